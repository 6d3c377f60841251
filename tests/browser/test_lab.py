"""Each notebook in a real JupyterLab: opened, run, and looked at as a reader does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .conftest import ROOT, SCREENSHOTS, barriers, loopback_only

NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
IDLE = "Python 3 (ipykernel) | Idle"  # the notebook's own indicator is idle before there is a kernel
PATIENCE = 240_000  # ms: every wait ends with what it waits for, so that a busy machine is slow and not wrong
RAW = re.compile(r"\bat 0x[0-9a-f]{6,}|<Figure size|<[a-zA-Z_.]+ object|\w*Warning:|\w+\(children=|\w+\(value=|ipykernel_\d+")

# What a reader reads in the outputs: texts and alternative texts, without the handles that the reader moves.
WORDS = """() => [...document.querySelectorAll('.jp-Cell-outputArea')].map(area => {
  const copy = area.cloneNode(true);
  copy.querySelectorAll('.widget-readout, button, .noUi-target').forEach(part => part.remove());
  return copy.textContent + [...copy.querySelectorAll('img')].map(image => image.alt).join(' ');
}).join('\\n')"""
TOO_WIDE = """() => [...document.querySelectorAll('.jp-OutputArea-output, .jp-MarkdownOutput, .jp-Cell-inputArea .cm-scroller')]
  .filter(box => box.offsetParent && box.scrollWidth > box.clientWidth + 1)
  .map(box => `${box.scrollWidth} in ${box.clientWidth}: ${box.textContent.slice(0, 90)}`)"""
DIM = """() => [...document.querySelectorAll('.jp-OutputArea-output img')].filter(image => !image.alt || !image.complete || !image.naturalWidth)
  .map(image => image.src.slice(0, 60))"""

LOOKS = "h => { const s = getComputedStyle(h); return [s.outline, s.boxShadow, s.borderColor, s.backgroundColor] + '' }"


class Reader:
    """A person at one notebook."""

    def __init__(self, chromium: Any, lab: SimpleNamespace, name: str) -> None:
        self.name, self.saved = name, lab.notebooks / name
        self.page = chromium.new_page(viewport={"width": 1280, "height": 900})
        self.page.set_default_timeout(PATIENCE)
        self.left = loopback_only(self.page)
        self.broken: list[str] = []
        self.folded: list[str] = []
        self.page.on("pageerror", lambda error: self.broken.append(str(error)))
        self.page.goto(f"{lab.url}/lab/workspaces/{Path(name).stem}/tree/{name}?token={lab.token}&reset")
        self.page.get_by_text(IDLE).wait_for()

    def do(self, command: str, **arguments: object) -> None:
        """What a menu entry does; over when JupyterLab says that it is."""
        self.page.evaluate(
            """([command, arguments]) => { window.over = false;
              window.jupyterapp.commands.execute(command, arguments).finally(() => { window.over = true }) }""",
            [command, arguments],
        )
        self.page.wait_for_function("() => window.over")

    def run_all(self) -> None:
        assert "[*]:" not in self.page.locator(".jp-InputPrompt").all_text_contents()
        self.do("notebook:run-all-cells")
        self.page.wait_for_function("() => ![...document.querySelectorAll('.jp-InputPrompt')].some(p => p.textContent === '[*]:')")
        self.page.get_by_text(IDLE).wait_for()

    def save(self) -> dict[str, Any]:
        was = self.saved.stat().st_mtime_ns
        self.do("docmanager:save")
        assert self.saved.stat().st_mtime_ns != was
        return json.loads(self.saved.read_text("utf-8"))

    def dress(self, theme: str) -> None:
        self.do("apputils:change-theme", theme=f"JupyterLab {theme}")
        self.page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=str(theme == "Light").lower())
        self.page.wait_for_function("() => !document.getElementById('jupyterlab-splash')")  # it fades away over what is to be looked at

    def press(self, key: str, before: str) -> None:
        """A key, and the words that it changes."""
        self.page.keyboard.press(key)
        self.page.wait_for_function(f"before => ({WORDS})() !== before", arg=before)

    def look(self, label: str) -> None:
        """A picture of the whole notebook, not of one screen."""
        height = self.page.evaluate("() => document.querySelector('.jp-WindowedPanel-inner').scrollHeight + 160")
        self.page.set_viewport_size({"width": 1280, "height": max(900, min(int(height), 16_000))})
        self.page.evaluate("() => { document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0 }")
        self.page.wait_for_timeout(400)
        self.page.locator(".jp-NotebookPanel").screenshot(path=SCREENSHOTS / f"lab-{Path(self.name).stem}-{label}.png")
        self.page.set_viewport_size({"width": 1280, "height": 900})


@pytest.fixture(scope="module", params=NOTEBOOKS)
def reader(request: pytest.FixtureRequest, chromium: Any, lab: SimpleNamespace) -> Any:
    someone = Reader(chromium, lab, request.param)
    someone.look("opened")
    someone.folded = someone.page.locator(".jp-OutputPlaceholder:visible .jp-PlaceholderText").all_text_contents()
    someone.run_all()
    yield someone
    someone.do("kernelmenu:shutdown")
    someone.page.close()


def test_run_all_ends_without_an_error_a_warning_or_a_raw_repr(reader: Reader) -> None:
    code = [cell for cell in reader.save()["cells"] if cell["cell_type"] == "code" and cell["source"]]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"] == []
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert outputs
    printed = [line for output in outputs if output["output_type"] == "stream" for line in "".join(output["text"]).splitlines()]
    assert [line for line in printed if len(line) > 100] == []  # JupyterLab breaks a longer line within a word
    reader.do("notebook:show-all-cell-outputs")
    reader.page.evaluate("() => document.querySelectorAll('details').forEach(fold => fold.open = true)")
    reader.page.wait_for_timeout(300)
    assert RAW.findall(reader.page.evaluate(WORDS)) == []


def test_outputs_that_reveal_an_answer_are_folded_and_the_fold_does_not_tell_it(reader: Reader) -> None:
    committed = json.loads((ROOT / "notebooks" / reader.name).read_text("utf-8"))
    assert len(reader.folded) == sum(cell["metadata"].get("jupyter", {}).get("outputs_hidden", False) for cell in committed["cells"])
    assert "".join(reader.folded).strip() == ""  # JupyterLab shows the first line of the HTML on the fold, unless that line is blank


def test_nothing_overflows_and_every_picture_is_shown_with_its_alternative_text(reader: Reader) -> None:
    reader.look("open")
    assert reader.page.evaluate(TOO_WIDE) == []
    assert reader.page.evaluate(DIM) == []
    found = barriers(reader.page, ".jp-Cell-outputArea", ".jp-MarkdownOutput")
    # ipywidgets gives the handle of a slider no name, and no way to give it one: a named field of the same number stands beside it.
    assert [line for line in found if "noUi-handle" not in line] == []
    assert reader.page.locator(".noUi-handle").count() == reader.page.locator(".jp-OutputArea-output input[type=number]").count()
    reader.dress("Dark")
    reader.look("dark")
    reader.dress("Light")


def test_a_widget_moved_by_keyboard_changes_the_text(reader: Reader) -> None:
    handles = reader.page.locator(".jp-OutputArea-output").locator(
        "[role=slider], input[type=range], button.widget-toggle-button, input[type=checkbox]"
    )
    if not handles.count():
        pytest.skip(f"{reader.name} has no widget")
    handle, before = handles.first, reader.page.evaluate(WORDS)
    handle.scroll_into_view_if_needed()
    handle.focus()
    button = handle.evaluate("h => h.tagName === 'BUTTON' || h.type === 'checkbox'")
    reader.press("Space" if button else "ArrowRight", before)
    reader.page.screenshot(path=SCREENSHOTS / f"lab-{Path(reader.name).stem}-widget.png")
    for part in (handle, *reader.page.locator(".jp-OutputArea-output input[type=number]").all()[:1]):
        part.focus()
        focused = part.evaluate(LOOKS)
        reader.page.evaluate("() => document.activeElement.blur()")
        assert focused != part.evaluate(LOOKS), "no visible focus"


def test_the_table_of_contents_lists_the_headings(reader: Reader) -> None:
    headings = reader.page.locator(".jp-Notebook :is(h1, h2)").count()
    reader.do("toc:show-panel")
    reader.page.locator(".jp-TableOfContents-item, .jp-tocItem").first.wait_for()
    assert reader.page.locator(".jp-tocItem").count() == headings > 0
    reader.page.screenshot(path=SCREENSHOTS / f"lab-{Path(reader.name).stem}-contents.png")


def test_no_request_left_the_machine_and_no_script_broke(reader: Reader) -> None:
    assert reader.left == []
    assert reader.broken == []
