"""What the reports say about missing cells and about luck, and the tabulate command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evalkit import Tally, compare, decide, evidence, read_campaign, read_reference, read_rule, read_tallies
from evalkit.__main__ import main
from evalkit.draw import Picture
from evalkit.records import bundled
from evalkit.report import release

FIXTURE = bundled("fixtures/claude_merge.csv")


def gapped(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "gaps.csv"
    path.write_text("".join(line for line in FIXTURE.read_text().splitlines(keepends=True) if not line.startswith(rows)))
    return path


@pytest.fixture(scope="module")
def shown():
    found = release()
    return found.campaign, found.rule, found.decision


def test_the_paired_table_names_repaired_and_regressed_instances(shown) -> None:
    text = evidence.compared(*shown).text
    assert "CLAUDE                   2          1  +16.7 points  -39.8 to +63.0 points  1" in text
    assert "CLAUDE repaired: i1, i2." in text
    assert "CLAUDE regressed: i6." in text


def test_the_report_says_how_many_were_tried_and_how_often_luck_promotes(shown) -> None:
    text = evidence.chance(*shown).text
    assert text.startswith("2 challengers tried. If none of them differed from the incumbent")
    assert "49% of campaigns" in text


def test_stability_shares_add_up_and_ties_stand_apart(shown) -> None:
    rows = [line.split() for line in evidence.stability(*shown).text.splitlines()]
    shares = [row for row in rows if row and row[-1].endswith("%") and row[-2].endswith("%")]
    assert [row[0] for row in shares] == ["BASELINE", "CLAUDE", "MERGE", "tie"]
    for column in (-1, -2):
        assert sum(float(row[column].rstrip("%")) for row in shares) == pytest.approx(100, abs=0.2)


def test_intervals_are_of_resolved_instances_and_never_of_cells(shown) -> None:
    claude = next(line for line in evidence.intervals(*shown).text.splitlines() if line.startswith("CLAUDE"))
    assert claude.split(maxsplit=4) == ["CLAUDE", "2", "of", "6", "9.7% to 70.0%"]
    assert isinstance(evidence.picture(*shown), Picture)


def test_a_decided_verdict_is_said_beside_a_rule_that_waits(tmp_path: Path) -> None:
    campaign, rule = read_campaign(gapped(tmp_path, "CLAUDE,i6,1")), read_rule()
    decision = decide(campaign, rule, incumbent="BASELINE")
    text = evidence.could_change(campaign, rule, decision).text
    assert "CLAUDE is promoted whatever the missing cells say" in text
    assert "it waits for the cells all the same" in text
    assert "2, 0.417   2, 0.500        11 of 12" in text
    assert evidence.rerun(campaign, rule, decision).record["rows"] == [["CLAUDE", "i6", "1", "absent", "no", ""]]
    open_case = read_campaign(gapped(tmp_path, "CLAUDE,i1,1", "CLAUDE,i2,1"))
    decision = decide(open_case, rule, incumbent="BASELINE")
    assert "Winner not decided" in evidence.could_change(open_case, rule, decision).text
    assert {row[4] for row in evidence.rerun(open_case, rule, decision).record["rows"]} == {"yes"}


def test_without_an_incumbent_there_is_nothing_to_pair_with(tmp_path: Path) -> None:
    campaign, rule = read_campaign(), replace(read_rule(), floor=1)
    decision = decide(campaign, rule, incumbent="none")
    assert evidence.compared(campaign, rule, decision).text == "There is no incumbent to compare with."


def test_missing_verdicts_of_a_mix_are_bounds_and_never_a_point() -> None:
    before, after = (
        Tally.of("a", {"routine": (6, 8, 10), "complex": (5, 10, 10)}),
        Tally.of("b", {"routine": (6, 8, 8), "complex": (5, 10, 10)}),
    )
    text = evidence.mix_coverage(read_reference(), compare(before, after, read_reference())).text
    assert "a, standardised                   0.510      0.530" in text
    assert "its direction is not decided" in text
    pair = compare(*read_tallies().values(), read_reference())
    assert "27.7% to 43.6%" in evidence.mix_intervals(read_reference(), pair).text
    assert "Every request is assessed" in evidence.mix_coverage(read_reference(), pair).text


def test_tabulate_writes_a_table_that_reads_back_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = bundled("fixtures/sources/inspect/alpha.eval")
    assert main(["tabulate", str(log), "--scorer", "match", "-o", str(tmp_path / "t.csv")]) == 0
    assert read_campaign(tmp_path / "t.csv").digest == read_campaign(log, scorer="match").digest
    assert main(["tabulate", str(log), "-o", str(tmp_path / "t.csv")]) == 12
    assert main(["tabulate", str(bundled("fixtures/traffic_mix.csv")), "--tally", "-o", str(tmp_path / "m.csv")]) == 0
    assert list(read_tallies(tmp_path / "m.csv")) == ["baseline", "candidate"]
    assert main(["tabulate", str(FIXTURE), "--tally", "--passes", "x", "-o", str(tmp_path / "m.csv")]) == 12
    assert "Traceback" not in capsys.readouterr().err
