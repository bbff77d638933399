"""Composition: the magics, and how a `%%agent` cell is put together from model, tools, policy, session and place.

The only package beside `config` and `cli` that may import everything. Read `cell.run_agent_cell` first.
"""
