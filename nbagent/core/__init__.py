"""The loop and its values: knows nothing of Jupyter, of an SDK or of a screen.

Read `loop.run` first; `events` is what it says, `ports` is what it needs.
"""
