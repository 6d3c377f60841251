"""Both report pages as a release meeting opens them: wide and narrow, light and dark, on paper, and with hostile names."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalkit.__main__ import main

from .conftest import SCREENSHOTS, barriers, loopback_only

LONG = "x" * 500
HOSTILE = [
    "<script>alert(1)</script>",
    "*bold* $x^2$ | `a` \\frac{1}{2} [a](http://a.b)",
    "\u202egnp.exe",
    LONG,
    "מועמד אחד",
    "&lt;b&gt; \"quoted\" 'single'",
    "'\"><img src=x onerror=alert(1)>",
    "# heading",
    "مجموعة الأمان",
]
WINDOWS = {"desktop": (1280, 800), "phone": (390, 844)}

# Every text against the page's own colours: axe leaves out what may lie under something else.
CONTRAST = """() => {
  const light = text => { const v = text.match(/[\\d.]+/g).slice(0, 3).map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] };
  const behind = node => { for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor; if (!/, 0\\)$/.test(colour)) return colour } return 'rgb(255, 255, 255)' };
  return Math.min(...[...document.querySelectorAll('h1, h2, p, li, th, td')].map(node => {
    const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05) }));
}"""

SPILT = """() => [...document.querySelectorAll('th, td')].filter(cell => cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)"""
BROKEN = """() => [...document.querySelectorAll('th, td')].flatMap(cell => {
  const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), cut = [], range = document.createRange();
  for (let node; node = text.nextNode();) for (const word of node.data.matchAll(/[\\w.%]+/g)) {
    range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
    if (word[0].length <= 16 && new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) cut.push(cell.textContent) }
  return cut })"""


def table(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    return path


def reference(path: Path, groups: Sequence[str]) -> Path:
    weights = {group: f"1/{len(groups)}" for group in groups}
    record = {"reference_id": HOSTILE[0], "grouping_rule": HOSTILE[1], "grader_version": HOSTILE[7]}
    path.write_text(json.dumps({**record, "weights": weights, "missing_group_policy": "comparison_unavailable"}))
    return path


def campaign(path: Path, candidates: Sequence[str], instances: Sequence[str], repetitions: int, groups: Sequence[str]) -> Path:
    rows: list[list[object]] = [["candidate", "instance", "repetition", "outcome", "group"]]
    for c, candidate in enumerate(candidates):
        for i, instance in enumerate(instances):
            for r in range(repetitions):
                late = (c, i, r) == (1, 2, 1)
                word = "timeout" if late else "pass" if (7 * i + 5 * r + i * r) % 23 <= 6 + c else "fail"
                rows.append([candidate, instance, r, word, groups[i % len(groups)]])
    return table(path, rows)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The ordinary and the hostile page of each report, and a large release."""
    folder = tmp_path_factory.mktemp("reports")
    groups = [HOSTILE[0], LONG, HOSTILE[8]]
    counts = [
        [period, g, 30 + 7 * p + 11 * i, 90 + 20 * i, 90 + 20 * i]
        for p, period in enumerate([HOSTILE[6], LONG])
        for i, g in enumerate(groups)
    ]
    tallies = table(folder / "tallies.csv", [["period", "group", "passed", "assessed", "requested"], *counts])
    hostile = campaign(folder / "hostile.csv", HOSTILE[:5], HOSTILE, 2, groups)
    large = campaign(folder / "large.csv", [f"candidate-{c:02}" for c in range(13)], [f"repo__issue-{i:04}" for i in range(120)], 8, ["routine", "complex", "safety"])  # fmt: skip
    mixed = reference(folder / "mix.json", groups)
    jobs: dict[str, list[object]] = {
        "release": [],
        "release-hostile": ["-p", "campaign", hostile, "-p", "incumbent", HOSTILE[0], "-p", "reference", mixed],
        "release-large": ["-p", "campaign", large, "-p", "incumbent", "candidate-00"],
        "mix": [],
        "mix-hostile": ["-p", "tallies", tallies, "-p", "baseline", HOSTILE[6], "-p", "candidate", LONG, "-p", "reference", mixed,
                        "-p", "blocking_groups", HOSTILE[8]],
    }  # fmt: skip
    for name, words in jobs.items():
        assert main(["report", name.split("-")[0], *map(str, words), "-o", str(folder / name)]) in (0, 10, 11)
    return {name: folder / name / "report.html" for name in jobs}


NAMES = ("release", "release-hostile", "release-large", "mix", "mix-hostile")
each = pytest.mark.parametrize("name", NAMES)


@each
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_reads_in_every_window(chromium: Any, reports: dict[str, Path], name: str, window: str, scheme: str) -> None:
    width, height = WINDOWS[window]
    page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    left, said = loopback_only(page), []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda line: said.append(line.text))
    page.goto(reports[name].as_uri())
    page.screenshot(path=SCREENSHOTS / f"page-{name}-{window}-{scheme}.png", full_page=True)
    assert barriers(page) == []
    assert page.evaluate(CONTRAST) >= 4.5
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # tables scroll, the page does not
    assert page.evaluate(SPILT) == []  # and no text leaves its cell, nor is a short word broken
    assert "hostile" in name or page.evaluate(BROKEN) == []
    verdict = page.locator(".verdict").bounding_box()
    assert verdict["y"] + verdict["height"] < height
    if name in ("release", "mix") and window == "desktop":
        assert page.locator(".table").first.bounding_box()["y"] < height  # the first table follows the reasons on the first screen
    assert left == []
    assert said == []
    page.close()


@each
def test_a_page_is_valid_small_and_alone(reports: dict[str, Path], name: str) -> None:
    import html5lib

    text = reports[name].read_text("utf-8")
    html5lib.HTMLParser(strict=True).parse(text)
    assert len(text.encode()) < 2_000_000
    assert not re.search(r"""(?:src|href|action)=["']?(?!data:|\#)[^"'\s>]*:""", re.sub(r'alt="[^"]*"', "", text))
    assert not re.search(r"<(?:script|iframe|object|embed|link|form)\b", text)
    levels = [int(level) for level in re.findall(r"<h([1-6])\b", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    ids = re.findall(r'\sid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert all(re.search(r'alt="[^"]{20,}"', image) for image in re.findall("<img [^>]*>", text))
    assert text.count("<th ") == len(re.findall(r"<th scope=", text))


@each
def test_names_arrive_as_text(chromium: Any, reports: dict[str, Path], name: str) -> None:
    if "hostile" not in name:
        pytest.skip("ordinary names")
    page = chromium.new_page()
    page.goto(reports[name].as_uri())
    shown = page.locator("main").inner_text()
    assert HOSTILE[0] in shown
    assert HOSTILE[8] in shown
    assert page.locator("main script, main a, main b, main h3, main img:not([src^='data:'])").count() == 0
    page.close()


@each
def test_a_page_prints_on_a4(chromium: Any, reports: dict[str, Path], name: str) -> None:
    page = chromium.new_page(color_scheme="dark")  # paper stays white
    page.goto(reports[name].as_uri())
    paper = page.pdf(path=SCREENSHOTS / f"page-{name}.pdf", prefer_css_page_size=True)
    boxes = {tuple(round(float(x)) for x in box.split()) for box in re.findall(rb"/MediaBox \[([^\]]*)\]", paper)}
    assert boxes == {(0, 0, 595, 842)}
    assert len(re.findall(rb"/Type /Page\b", paper)) <= 14
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.set_viewport_size({"width": 680, "height": 980})  # the width of A4 less its margins
    assert page.evaluate("[...document.querySelectorAll('.table')].every(box => box.scrollWidth <= box.clientWidth + 1)")
    assert page.evaluate(SPILT) == []
    assert "hostile" in name or page.evaluate(BROKEN) == []
    page.close()
