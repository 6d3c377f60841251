"""The page of formats: it is what its script makes, it leaves no format out, and every command on it runs."""

from __future__ import annotations

import re
import runpy
import shlex
from fractions import Fraction
from pathlib import Path

import pytest

from evalkit import report
from evalkit.__main__ import main
from evalkit.sources import FORMATS, read_tallies

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "formats.md"
TEXT = PAGE.read_text("utf-8")
COMMANDS = [line for line in TEXT.splitlines() if line.startswith("python -m evalkit ") and "PATH" not in line]
RELEASES = [line for line in COMMANDS if " report release " in line]


def parameters(command: str) -> dict[str, str]:
    words = shlex.split(command)
    return {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "-p"}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_page_is_what_its_script_makes() -> None:
    assert runpy.run_path(str(PAGE.with_name("make_formats.py")))["page"]() == TEXT, "run python docs/make_formats.py"


def test_every_format_has_its_section_and_a_command() -> None:
    sections = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", TEXT, re.MULTILINE))
    for known in FORMATS:
        assert known.looks_for in sections[known.name]
        assert [line for line in RELEASES if line in sections[known.name]], known.name
        assert all(f"`{choice}`" in sections[known.name].splitlines()[-2] for choice in known.choices)


@pytest.mark.parametrize("command", RELEASES, ids=lambda command: parameters(command)["campaign"])
def test_each_command_reads_its_example_as_the_page_says(command: str) -> None:
    found = report.release(**parameters(command))
    assert found.campaign.candidates == ("alpha", "beta")
    assert command.endswith(" -o report")
    said = TEXT.split(f"{command}\n```\n\n> ")[1].split("\n")[0]
    assert said == found.campaign.notes[0] + "."


def test_a_table_and_its_tool_say_the_same() -> None:
    """The canonical table of the page holds the cells of the made Inspect logs."""
    table, logs = (
        report.release(**parameters(next(line for line in RELEASES if name in line))) for name in ("long.csv", "sources/inspect")
    )
    assert (table.campaign.codes == logs.campaign.codes).all()


def test_the_commands_of_the_mix_and_of_the_tables_run(tmp_path: Path) -> None:
    ran = []
    for command in COMMANDS:
        if command in RELEASES:
            continue
        words = shlex.split(command)[3:]
        words[words.index("-o") + 1] = str(tmp_path / words[words.index("-o") + 1])
        if words[0] == "report":
            given = parameters(command)
            found = report.mix(**{**given, "reference": str(tmp_path / given["reference"])})
            assert found.comparison.standardised == (Fraction(7, 12), Fraction(5, 12))
        else:
            assert main(words) == 0
        ran.append(words[0])
    assert ran == ["tabulate", "reference", "report", "tabulate"]
    assert read_tallies(tmp_path / "counts.csv") == read_tallies("fixtures/sources/tables/counts.csv")
    assert report.release(campaign=str(tmp_path / "campaign.csv"), incumbent="alpha").campaign.rows == 12


def test_the_lines_of_python_run() -> None:
    import pandas as pd

    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names = {"frame": pd.read_json("fixtures/sources/tables/scores.jsonl", lines=True)}
    exec(code, names)
    assert names["data"].candidates == ("alpha", "beta")


def test_links_and_anchors_lead_somewhere() -> None:
    headings = {re.sub(r"[^a-z0-9 -]", "", line.lower()).strip().replace(" ", "-") for line in re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert target.removeprefix("#") in headings if target.startswith("#") else (PAGE.parent / target).is_file(), target


def test_a_table_per_run_counts_the_runs_of_each_candidate(tmp_path: Path) -> None:
    for name, rewards in {"a1": (1, 0), "a2": (1, 1), "b1": (1, 1), "b2": (1, 1)}.items():
        (tmp_path / f"{name}.csv").write_text("task,reward\n" + "".join(f"i{n},{reward}\n" for n, reward in enumerate(rewards)))
    names = "; ".join(f"{one}{run}.csv={one}" for one in "ab" for run in (1, 2))
    found = report.release(
        campaign=str(tmp_path), columns="instance=task; outcome=reward", candidate_names=names, repetition="file", incumbent="a"
    )
    assert found.campaign.repetitions == ("1", "2")
    assert [found.campaign.outcome("a", "i1", run) for run in "12"] == ["fail", "pass"]


def test_what_a_table_has_no_column_for_can_be_said(tmp_path: Path) -> None:
    """As the page says: a candidate, or the one repetition."""
    (tmp_path / "once.csv").write_bytes("\ufeffTicket,OK?\r\nT-1,T\r\nT-2,F\r\n".encode())
    said = "candidate== mine; instance=Ticket; repetition== 1; outcome=OK?; passes=T; fails=F"
    assert "`candidate== mine`, or `repetition== 1`" in TEXT
    rule = tmp_path / "rule.json"
    rule.write_text('{"rule_id": "r", "owner": "me", "purpose": "a first release", "reduction": "fail_closed", "floor": 1}')
    found = report.release(campaign=str(tmp_path / "once.csv"), columns=said, incumbent="none", rule=str(rule))
    assert (found.campaign.candidates, found.decision.verdict) == (("mine",), "promote")
