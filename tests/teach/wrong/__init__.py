"""Plausible wrong answers to the exercises of the course: exercise id → three sources of its cell."""
