"""Committed notebooks are fit to be read and to be compared by nbval. Copy this file; it needs pytest and nothing else.

nbval re-runs notebooks and compares outputs. What it lets pass is held here: a code cell without an execution count is run
and never compared, an unknown magic skips the rest of its cell, a PNG is not compared at all.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(path for path in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
ALLOWED_MAGICS: tuple[str, ...] = ()  # such as ("%matplotlib inline",)

RAW = re.compile(r"\bat 0x[0-9a-f]{6,}|<[\w.]+ object\b|<Figure size|ipykernel_\d+|(?:/home/|/Users/|[A-Z]:\\Users\\)\S*")


def faults(notebook: dict[str, Any], folder: Path) -> list[str]:
    """What is wrong with a committed notebook, one line each; none is the aim."""
    found: list[str] = []
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    counts = [cell.get("execution_count") for cell in code]
    if counts != list(range(1, len(code) + 1)):
        found.append(f"not run from top to bottom: execution counts {counts}")
    for number, cell in enumerate(code, 1):
        magics = [line.strip() for line in "".join(cell["source"]).splitlines() if re.match(r"\s*[%!]", line)]
        found += [f"[{number}] magic or shell command: {line}" for line in magics if line not in ALLOWED_MAGICS]
        for output in cell["outputs"]:
            if output["output_type"] == "error" or output.get("name") == "stderr":
                found.append(f"[{number}] {output.get('ename', 'text on standard error')}")
                continue
            shown = {mime: "".join(text) for mime, text in output.get("data", {}).items() if isinstance(text, str | list)}
            raw = RAW.search(
                "".join(output.get("text", "")) + shown.get("text/plain", "") + re.sub(r"data:\S*", "", shown.get("text/html", ""))
            )
            if raw:
                found.append(f"[{number}] shows {raw[0]}")
            if "image/png" in shown:
                found.append(f"[{number}] a PNG, which nbval does not compare: emit SVG, or print the numbers beside it")
            found += [f"[{number}] a picture without alt text" for tag in re.findall("<img [^>]*>", shown.get("text/html", "")) if not re.search(r'alt="[^"]+"', tag)]  # fmt: skip
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            found += ["a picture without alt text" for _ in re.findall(r"!\[\s*\]\(", text)]
            targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
            found += [f"a link to {target}, which is not there" for target in targets if not (folder / target).exists()]
    if notebook["metadata"].get("kernelspec", {}).get("name") != "python3":
        found.append("a kernel that other machines do not have; choose python3")
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebook_is_healthy(path: Path) -> None:
    assert faults(json.loads(path.read_text("utf-8")), path.parent) == []


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"execution_count": None}, "not run from top to bottom"),
        ({"source": ["%nosuchmagic\n", "1 + 1"]}, "magic or shell command"),
        ({"outputs": [{"output_type": "error", "ename": "KeyError"}]}, "KeyError"),
        ({"outputs": [{"output_type": "stream", "name": "stderr", "text": ["a warning"]}]}, "standard error"),
        ({"outputs": [{"output_type": "stream", "name": "stdout", "text": ["<object object at 0x7f00deadbeef>"]}]}, "shows <object object"),
        ({"outputs": [{"output_type": "display_data", "data": {"image/png": "AAAA"}}]}, "a PNG"),
        ({"outputs": [{"output_type": "display_data", "data": {"text/html": ['<img src="data:,">']}}]}, "without alt text"),
        ({"cell_type": "markdown", "source": ["[next](nowhere.ipynb)"]}, "nowhere.ipynb"),
    ],
)
def test_each_fault_is_found(change: dict[str, Any], fault: str, tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["1 + 1"], "execution_count": 1, "outputs": [], **change}
    notebook = {"cells": [cell], "metadata": {"kernelspec": {"name": "python3"}}}
    (found,) = faults(notebook, tmp_path)
    assert fault in found
