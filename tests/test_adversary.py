"""Ways to a wrong promote, to a traceback or to a false sentence that were found once and must not come back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit import Tally, compare, read_reference, show
from evalkit.__main__ import main
from evalkit._exact import as_text, percents
from evalkit.errors import EvalkitError
from evalkit.records import bundled
from evalkit.report import FILES, LOCK, release, step_summary, verify

RULE = {"rule_id": "r", "owner": "o", "purpose": "p", "reduction": "fail_closed"}


def files(tmp_path: Path, table: str, **rule: object) -> dict[str, str]:
    (tmp_path / "c.csv").write_text(table)
    (tmp_path / "r.json").write_text(json.dumps({**RULE, **rule}))
    return {"campaign": str(tmp_path / "c.csv"), "rule": str(tmp_path / "r.json"), "incumbent": "OLD"}


def test_an_incomplete_candidate_is_not_ranked_by_its_cost_alone(tmp_path: Path) -> None:
    table = "candidate,instance,repetition,outcome,cost\nOLD,i1,0,pass,5\nOLD,i2,0,pass,5\nNEW,i1,0,pass,1\nNEW,i2,0,timeout,1\n"
    found = release(**files(tmp_path, table, reduction="lowest(cost)")).decision
    assert (found.verdict, found.challenger) == ("undecided", ())


def test_a_decided_rule_promotes_whom_every_completion_promotes(tmp_path: Path) -> None:
    rows = {"OLD": "fff", "A": "pff", "B": "ppu"}
    words = {"f": "fail", "p": "pass", "u": "ungraded"}
    table = "candidate,instance,repetition,outcome\n" + "".join(
        f"{name},i{k},0,{words[letter]}\n" for name, letters in rows.items() for k, letter in enumerate(letters)
    )
    assert release(**files(tmp_path, table, coverage="decided")).decision.challenger == ("B",)
    open_table = table.replace("B,i1,0,pass", "B,i1,0,ungraded")  # now A and B could each come first
    assert release(**files(tmp_path, open_table, coverage="decided")).decision.verdict == "undecided"


@pytest.mark.parametrize("name", ["campaign", "incumbent", "rule"])
def test_an_unset_variable_of_a_script_does_not_decide_on_demonstration_data(tmp_path: Path, name: str, capsys) -> None:
    assert main(["report", "release", "-p", name, "", "-o", str(tmp_path / "out")]) == 12
    assert f"found a blank {name}" in capsys.readouterr().err


def test_an_invisible_signature_is_none() -> None:
    with pytest.raises(EvalkitError, match="expected role=name"):
        release(sign_offs="safety=\u200b")


def test_a_rate_over_many_groups_is_written_out_whole() -> None:
    number = 10**5000 + 1
    assert len(as_text(number)) == 5001
    assert as_text(number)[0] == as_text(number)[-1] == "1"


def test_a_fall_is_never_shown_as_no_change() -> None:
    first, second = 1 - read_reference().weights["routine"] / 10**6, 1 - read_reference().weights["complex"] / 10**6
    one, other = percents(first, second)
    assert one != other


@pytest.mark.parametrize(
    "words",
    [
        ("report", "release", "-p", "incumbent", "\udcff", "-o", "out"),
        ("reference", "--from", "TALLIES", "--period", "baseline", "--id", "x", "--purpose", "y", "-o", "nowhere/x.json"),
        ("reference", "--from", "TALLIES", "--period", "baseline", "--id", " ", "--purpose", "y"),
        ("report", "release", "-p", "campaign", ".", "-p", "incumbent", "x", "-o", "inside"),
    ],
)
def test_what_cannot_be_written_or_read_back_is_refused(tmp_path: Path, monkeypatch, capsys, words) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([str(bundled("fixtures/traffic_mix.csv")) if word == "TALLIES" else word for word in words]) == 12
    assert "Traceback" not in capsys.readouterr().err


def test_a_job_summary_that_cannot_be_written_does_not_change_the_status(monkeypatch, capsys) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/nonexistent/summary.md")
    step_summary("x")
    assert "no job summary written" in capsys.readouterr().err


def test_verify_names_a_page_that_was_edited_even_where_its_digest_was_removed(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).write_text("{}")
    (tmp_path / "decision.json").write_text(json.dumps(release().record))
    (tmp_path / "provenance.json").write_text(json.dumps({"kind": "release", "parameters": {}, "inputs": {}, "outputs": {}}))
    assert "report.html is not the file that the run wrote" in verify(tmp_path)
    (tmp_path / "report.html").unlink()
    assert "report.html is not the file that the run wrote" in verify(tmp_path)


def test_what_stands_in_the_way_of_a_run_is_refused_and_scratch_of_a_killed_run_goes(tmp_path: Path, capsys) -> None:
    (tmp_path / LOCK).touch()
    (tmp_path / ".run-old").mkdir()
    (tmp_path / "report.html").mkdir()
    assert main(["report", "release", "-o", str(tmp_path)]) == 12
    assert "in the way" in capsys.readouterr().err
    (tmp_path / "report.html").rmdir()
    assert main(["report", "release", "-p", "campaign", "nowhere.csv", "-o", str(tmp_path)]) == 12
    assert not (tmp_path / ".run-old").exists()


def test_equal_rates_tie_at_every_mix_and_a_failed_blocking_group_is_a_reason() -> None:
    before, after = Tally.of("a", {"routine": (5, 10), "complex": (9, 18)}), Tally.of("b", {"routine": (20, 40), "complex": (1, 2)})
    comparison = compare(before, after, read_reference(), ["routine"])
    assert "the two periods tie" in show.dominance(comparison).text
    assert comparison.reasons[-1] == "outside the weights, every request of group routine passed: not met (20 of 40 requests, 40 assessed)"


def test_cells_that_a_rule_counts_as_fail_are_not_called_observed(tmp_path: Path) -> None:
    table = "candidate,instance,repetition,outcome\nOLD,i1,0,pass\nOLD,i2,0,fail\nNEW,i1,0,pass\nNEW,i2,0,timeout\n"
    record = release(**files(tmp_path, table, count_as_fail=["timeout"])).record
    assert (record["candidates"]["NEW"]["observed"], record["candidates"]["NEW"]["counted_as_fail"]) == (1, {"timeout": 1})
