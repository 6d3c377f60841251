"""The front door: pictures, sample page, links, and the two files that other projects copy."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from evalkit import __version__
from evalkit.page import page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


def test_the_readmes_pictures_are_what_the_kit_draws() -> None:
    for name, picture in runpy.run_path(str(DOCS / "make.py"))["pictures"]().items():
        assert (DOCS / name).read_text("utf-8") == picture.svg, f"{name} is out of date: make docs"


def test_the_sample_page_has_the_style_of_today() -> None:
    empty = page('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "PROMOTE: CLAUDE may replace BASELINE")
    assert (DOCS / "sample_report.html").read_text("utf-8").startswith(empty.partition("<main>")[0])


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file_and_every_picture_has_a_text(path: Path) -> None:
    text = path.read_text("utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    inside = [target.partition("#")[0] for target in targets if not re.match(r"https?:", target)]
    assert [target for target in inside if target and not (path.parent / target).exists()] == []
    assert not re.search(r"!\[\s*\]", text)


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        ("<object at 0x7f00deadbeef>", "<object at ADDRESS>"),
        ("/" + "tmp/ipykernel_4711/123456.py:3: UserWarning: old", "NOTEBOOK_CELL: UserWarning: old"),
        ("<dc:date>2026-12-01T00:00:00</dc:date>", "DATE"),
        ("Wall time: 12 ms\n45.0%", "TIME\n45.0%"),
        ("6 of 12 cells (0.500)", "6 of 12 cells (0.500)"),
    ],
)
def test_the_sanitiser_hides_what_changes_and_no_number(shown: str, kept: str) -> None:
    text = (DOCS / "copy" / "nbval_sanitize.cfg").read_text("utf-8")
    for regex, replace in re.findall(r"^regex: (.*)\nreplace: (.*)$", text, re.MULTILINE):
        shown = re.sub(regex, replace, shown)
    assert shown == kept
