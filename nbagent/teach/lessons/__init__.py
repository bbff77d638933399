"""The lessons of the course: which module has the exercises of which notebook (`notebooks/NN_name.ipynb`)."""

from __future__ import annotations

LESSONS: dict[str, str] = {
    "01": "thirty_lines",
    "02": "four_states",
    "03": "when_to_stop",
    "04": "tools",
    "05": "carriers",
    "06": "backpressure",
    "07": "composing",
    "08": "runtime_decides",
    "09": "stop_reasons",
    "10": "react",
    "11": "agents",
    "12": "data_analysis",
    "13": "own_tools",
    "14": "find_the_loop",
}
"""Number of the notebook → name of the module here and of the notebook's file."""
