"""Sessions are found by id and name; a file that is named like a way out of the folder is none."""

from __future__ import annotations

import json

import pytest

from nbagent.app.finding import find, outlines
from nbagent.core.errors import ConfigError
from nbagent.extend.sessions import FOLDER

GOOD = "20260101-000000-aaaa"


@pytest.mark.parametrize("name", [".", "..", "-rf", "--yes", "a\nb", "a@2", "\u202eabc", "x y"])
def test_a_file_with_a_name_that_is_no_id_is_no_session(tmp_path, name):
    """`...jsonl` of somebody's folder: deleting it would have deleted the folder above."""
    place = tmp_path / FOLDER
    place.mkdir(parents=True)
    for one in (GOOD, name):
        record = {"type": "session", "v": 1, "id": one, "system": "", "tools": [], "title": f"T{one}"}
        (place / f"{one}.jsonl").write_text(json.dumps(record) + "\n")
    assert [one.id for one in outlines(tmp_path)] == [GOOD]
    assert find(tmp_path, GOOD[:8]).id == GOOD
    for ref in (name, f"T{name}", f"../sessions/{GOOD}", f"{GOOD}.jsonl"):
        with pytest.raises(ConfigError, match="no session"):
            find(tmp_path, ref)
