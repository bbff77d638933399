"""A widget's module is made of plain files; it stands alone and no two of its files use one name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nbagent.esm import module
from tests.source import PACKAGE

TOP = re.compile(r"^(?:async )?(?:const|let|class|function)\s+(\w+)", re.MULTILINE)
ENTRIES = sorted(path for path in PACKAGE.rglob("static/*.js") if "export default" in path.read_text("utf-8"))


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.js").write_text(text, "utf-8")
    return folder


def test_what_is_imported_comes_first_and_once(tmp_path):
    write(
        tmp_path,
        a='// @ts-check\nimport { b } from "./b.js";\nimport { c } from "./c.js";\nexport default b + c;\n',
        b='import { c } from "./c.js";\nexport const b = c;\n',
        c="export const c = 1;\n",
    )
    text = module(tmp_path, "a.js")
    assert "import" not in text
    assert [line for line in text.splitlines() if line] == ["const c = 1;", "const b = c;", "export default b + c;"]


def test_several_names_on_several_lines_are_imported(tmp_path):
    write(
        tmp_path,
        a='import {\n  b,\n  c,\n} from "./b.js";\nexport default b;\n',
        b="export function b() {}\nexport class c {}\n",
    )
    assert module(tmp_path, "a.js").split() == ["function", "b()", "{}", "class", "c", "{}", "export", "default", "b;"]


def test_a_file_that_is_missing_is_an_error(tmp_path):
    write(tmp_path, a='import { b } from "./gone.js";\n')
    with pytest.raises(FileNotFoundError):
        module(tmp_path, "a.js")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda path: path.name)
def test_our_modules_stand_alone(entry):
    text = module(entry.parent, entry.name)
    assert not re.search(r"^\s*import\b", text, re.MULTILINE)
    assert re.findall(r"^export (\w+)", text, re.MULTILINE) == ["default"]
    names = TOP.findall(text)
    assert sorted(names) == sorted(set(names)), "two files use one name at the top"
