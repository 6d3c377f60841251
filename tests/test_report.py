"""The runner: one command from a file to a verdict, a record and a page; whole or not at all."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from evalkit import report
from evalkit.__main__ import main
from evalkit.errors import EvalkitError
from evalkit.records import bundled
from evalkit.report import FILES, LOCK, verify

FIXTURES = bundled("fixtures")
CAMPAIGN = FIXTURES / "claude_merge.csv"
REAL = Path(__file__).resolve().parents[2] / "shared" / "real"


def command(*words: object) -> int:
    return main([str(word) for word in words])


def release(output: Path, **parameters: object) -> int:
    pairs = [part for name, value in parameters.items() for part in ("-p", name, value)]
    return command("report", "release", *pairs, "-o", output)


def rows() -> list[list[str]]:
    with CAMPAIGN.open(newline="") as stream:
        return list(csv.reader(stream))


def write(path: Path, table: list[list[str]]) -> Path:
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(table)
    return path


def decision(output: Path) -> dict:
    return json.loads((output / "decision.json").read_text())


@pytest.fixture(scope="module")
def bundled_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("a folder") / "out"
    assert release(output) == 0
    return output


def test_the_bundled_campaign_promotes_claude_over_baseline_with_status_0(bundled_run: Path) -> None:
    assert decision(bundled_run)["labels"] == {"highest_mean": ["MERGE"], "winner": ["CLAUDE"], "verdict": "promote"}
    assert {path.name for path in bundled_run.iterdir()} == {*FILES, LOCK}
    assert (bundled_run / "rerun.csv").read_text() == "candidate,instance,repetition,reason,could_change_verdict,detail\n"
    summary = (bundled_run / "summary.md").read_text()
    assert summary.startswith("Demonstration data")
    assert "PROMOTE: CLAUDE may replace BASELINE" in summary
    assert "CLAUDE | 5 of 12 cells passed" in summary


def test_the_run_ends_with_the_verdict_and_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path / "out", incumbent="CLAUDE") == 10
    told = capsys.readouterr().out
    assert "KEEP the incumbent: CLAUDE stays" in told
    assert "MERGE: 6 of 12 cells passed, key 1, 1/2" in told


def test_with_the_mean_as_the_rule_merge_replaces_baseline() -> None:
    found = report.release(incumbent="BASELINE", campaign=str(CAMPAIGN), rule=str(FIXTURES / "mean_rule.json")).decision
    assert (found.verdict, found.challenger) == ("promote", ("MERGE",))


def test_one_missing_cell_of_claude_makes_it_ineligible_but_visible(tmp_path: Path) -> None:
    path = write(tmp_path / "gap.csv", [row for row in rows() if row[:3] != ["CLAUDE", "i6", "1"]])
    assert release(tmp_path / "out", campaign=path, incumbent="BASELINE") == 11
    record = decision(tmp_path / "out")
    assert record["candidates"]["CLAUDE"]["place"] is None
    assert record["candidates"]["CLAUDE"]["missing"] == {"absent": 1}
    assert "CLAUDE is not ranked: 11 of 12 cells (1 absent)" in (tmp_path / "out" / "report.html").read_text()
    assert (tmp_path / "out" / "rerun.csv").read_text().splitlines()[1] == "CLAUDE,i6,1,absent,no,"
    text = (FIXTURES / "fail_closed_rule.json").read_text().replace('"complete"', '"decided"')
    (tmp_path / "rule.json").write_text(text)
    by_bounds = report.release(campaign=str(path), incumbent="BASELINE", rule=str(tmp_path / "rule.json")).decision
    assert (by_bounds.verdict, by_bounds.challenger) == ("promote", ("CLAUDE",))


REFUSED = [
    ({"campaign": str(CAMPAIGN)}, "found no incumbent; expected the candidate in use now: BASELINE, CLAUDE, MERGE"),
    ({"campaign": str(CAMPAIGN), "incumbent": "none"}, "found incumbent none and a rule without a floor"),
    ({"campaign": str(CAMPAIGN), "incumbent": "Claude"}, "found incumbent 'Claude'; expected one of BASELINE, CLAUDE, MERGE"),
    ({"picker": "__import__('os')"}, "found reduction"),
    ({"sign_offs": "safety"}, "found sign-off 'safety'; expected role=name"),
    ({"campaign": 7}, "found 7 (int) for parameter campaign; expected text"),
]


@pytest.mark.parametrize(("parameters", "sentence"), REFUSED)
def test_what_cannot_be_decided_is_refused_in_one_sentence(parameters, sentence) -> None:
    with pytest.raises(EvalkitError) as refusal:
        report.release(**parameters)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"campain": "x.csv"}, "found parameter campain; expected one of campaign, incumbent"),
        ({"campaign": "nowhere.csv", "incumbent": "x"}, "nowhere.csv: found no readable file"),
        REFUSED[1],  # from inside the notebook
    ],
)
def test_a_refused_run_ends_with_status_12_and_one_sentence(tmp_path, capsys, parameters, sentence) -> None:
    assert release(tmp_path / "out", **parameters) == 12
    out, err = capsys.readouterr()
    assert sentence in err
    assert "Traceback" not in out + err
    assert not (tmp_path / "out" / "decision.json").exists()


def test_a_refused_run_leaves_no_decision_of_yesterday(tmp_path: Path, bundled_run: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    for path in bundled_run.iterdir():
        (output / path.name).write_bytes(path.read_bytes())
    assert release(output, campaign="nowhere.csv", incumbent="x") == 12
    assert [path.name for path in output.iterdir()] == [LOCK]


def test_a_folder_with_files_of_the_user_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "summary.md").write_text("mine")
    assert release(tmp_path) == 12
    assert "found summary.md in" in capsys.readouterr().err
    assert (tmp_path / "summary.md").read_text() == "mine"


def test_two_runs_into_one_folder_do_not_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / LOCK).open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert release(tmp_path) == 12
    assert "found another run in" in capsys.readouterr().err


def test_a_parameter_file_keeps_text_as_text_and_the_command_line_wins(tmp_path: Path) -> None:
    table = [[cell.replace("BASELINE", "007") for cell in row] for row in rows()]
    path = write(tmp_path / "campaign.csv", table)
    (tmp_path / "p.yaml").write_text(f"campaign: {path}\nincumbent: 007\n")
    assert command("report", "release", "-f", tmp_path / "p.yaml", "-o", tmp_path / "out") == 0
    assert decision(tmp_path / "out")["incumbent"] == "007"
    notebook = bundled("notebooks/report_release.ipynb")
    assert report._parameters(notebook, [("incumbent", "CLAUDE")], tmp_path / "p.yaml")["incumbent"] == "CLAUDE"


@pytest.mark.parametrize(
    "text",
    ["- a", "a: [1]", "a: 1\na: 2", "incumbent:", "a: !!python/object/apply:os.system ['true']", "{", "x", "nope: 1", "a: &x [*x]"],
)
def test_a_parameter_file_that_is_not_plain_names_and_values_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    assert command("report", "release", "-f", tmp_path / "p.yaml", "-o", tmp_path / "out") == 12


def test_verify_recomputes_the_decision_and_names_every_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "campaign.csv", rows())
    output = tmp_path / "out"
    assert release(output, campaign=path, incumbent="BASELINE") == 0
    assert verify(output) == []
    stored = decision(output)
    stored["labels"]["verdict"] = "keep the incumbent"
    (output / "decision.json").write_text(json.dumps(stored))
    write(path, [[*row[:3], "pass" if row[:3] == ["MERGE", "i2", "1"] else row[3]] for row in rows()])
    assert command("verify", output) == 1
    told = capsys.readouterr().out
    assert "decision.json is not the file that the run wrote" in told
    assert "campaign.csv changed since the run" in told
    assert "decision.labels.verdict: stored 'keep the incumbent', recomputed" in told
    assert "decision.candidates.MERGE.passed: stored 6, recomputed 7" in told
    assert command("verify", tmp_path / "nothing") == 12


def test_the_mix_report_compares_and_never_promotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("report", "mix", "-o", tmp_path / "out") == 0
    record = decision(tmp_path / "out")
    assert (record["observed"], record["standardised"], record["equal_weights"]) == (["9/20", "3/4"], ["9/20", "7/20"], ["13/20", "11/20"])
    assert (record["rate_effect"], record["mix_effect"], record["verdict"]) == ("-1/10", "2/5", "compared")
    assert "promote" not in capsys.readouterr().out.lower()
    assert "reference not bound to the data" in (tmp_path / "out" / "summary.md").read_text().lower()


def test_an_ungraded_group_makes_the_mix_comparison_unavailable_with_status_11(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("period,group,passed,assessed,requested\na,x,6,8,10\na,y,1,2,2\nb,x,6,8,8\nb,y,1,2,2\n")
    (tmp_path / "r.json").write_text(
        '{"reference_id": "r", "grouping_rule": "g", "weights": {"x": "1/2", "y": "1/2"}, '
        '"missing_group_policy": "comparison_unavailable", "grader_version": "v"}'
    )
    given = ("-p", "tallies", path, "-p", "baseline", "a", "-p", "candidate", "b", "-p", "reference", tmp_path / "r.json")
    assert command("report", "mix", *given, "-p", "blocking_groups", "y", "-o", tmp_path / "out") == 11
    record = decision(tmp_path / "out")
    assert record["standardised"] == [None, None]
    assert record["blocking_groups"][0]["state"] == "not met"
    assert command("report", "mix", "-p", "tallies", path, "-o", tmp_path / "out") == 12


def test_a_reference_is_written_from_a_period_and_ties_that_period_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "reference.json"
    words = ("reference", "--from", FIXTURES / "traffic_mix.csv", "--period", "baseline", "--id", "base", "--purpose", "the first period")
    assert command(*words) == 0
    assert '"complex": "9/10"' in capsys.readouterr().out
    assert command(*words, "-o", target) == 0
    assert command(*words, "-o", target) == 12
    record = report.mix(reference=str(target)).record
    assert record["observed"][0] == record["standardised"][0] == "9/20"


def test_the_step_summary_of_a_workflow_gets_the_verdict(tmp_path: Path, bundled_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "step.md"
    target.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    report.step_summary((bundled_run / "summary.md").read_text())
    assert target.read_text() == "before\n" + (bundled_run / "summary.md").read_text()


HOSTILE = ["<script>alert(1)</script>", "*bold* $x^2$ | `a`", "\u202egnp.exe", "x" * 500, "](http://a.b)", "&lt;b&gt;", "'\"><img src=x>"]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)


def test_names_of_strangers_are_text_in_the_page_and_in_the_summary(tmp_path: Path) -> None:
    names = dict(zip(["BASELINE", "CLAUDE", "MERGE", "i1", "i2", "i3", "i4"], HOSTILE, strict=True))
    path = write(tmp_path / "c.csv", [[names.get(cell, cell) for cell in row] for row in rows()])
    assert release(tmp_path / "out", campaign=path, incumbent=HOSTILE[0]) == 0
    page, summary = ((tmp_path / "out" / name).read_text() for name in ("report.html", "summary.md"))
    parser = _Tags()
    parser.feed(page)
    assert "script" not in parser.tags
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page + summary
    assert "<script" not in summary
    assert "](http" not in summary
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)


def test_the_page_needs_no_network_and_shows_no_code(bundled_run: Path) -> None:
    page = (bundled_run / "report.html").read_text()
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", page)
    assert "report.release(" not in page
    assert page.index("PROMOTE: CLAUDE may replace BASELINE") < page.index("Three labels")
    assert len(page) < 2_000_000


def test_plain_papermill_gives_the_same_decision_from_any_folder(
    tmp_path: Path, bundled_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import papermill

    write(tmp_path / "mine.csv", rows())
    monkeypatch.chdir(tmp_path)
    notebook = bundled("notebooks/report_release.ipynb")
    given = {"campaign": "mine.csv", "incumbent": "BASELINE"}
    done = papermill.execute_notebook(str(notebook), "out.ipynb", parameters=given, progress_bar=False)
    records = [o["data"][k] for c in done.cells for o in c.get("outputs", ()) for k in o.get("data", {}) if k.endswith("decision+json")]
    assert records == [decision(bundled_run)]


def test_optimised_python_refuses_and_decides_alike(tmp_path: Path) -> None:
    code = "import sys; from evalkit import report; print(report.release(campaign=sys.argv[1], incumbent=sys.argv[2]).decision.verdict)"

    def call(incumbent: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-O", "-c", code, str(CAMPAIGN), incumbent], capture_output=True, text=True, check=False)

    assert call("BASELINE").stdout == "promote\n"
    assert "found no incumbent" in call("").stderr


def test_tau_bench_airline_runs_from_the_command_line(tmp_path: Path) -> None:
    file = REAL / "tau-bench" / "gpt-4o-airline.json.gz"
    if not file.exists():
        pytest.skip("../shared/real/tau-bench/gpt-4o-airline.json.gz is absent")
    assert release(tmp_path / "out", campaign=file, incumbent="none", rule=FIXTURES / "first_release_rule.json") == 0
    page = (tmp_path / "out" / "report.html").read_text()
    for rate in ("0.420", "0.273", "0.220", "0.200"):
        assert rate in page


def test_a_margin_is_one_more_condition_and_quotes_the_limit_that_decided(tmp_path: Path) -> None:
    text = (FIXTURES / "fail_closed_rule.json").read_text().replace('"coverage"', '"margin": "0", "coverage"')
    (tmp_path / "rule.json").write_text(text)
    found = report.release(rule=str(tmp_path / "rule.json")).decision
    assert found.verdict == "keep the incumbent"
    assert re.fullmatch(r"difference 0\.167, lower limit -0\.\d{3} \(Tango, 95%\)", found.conditions[-1].numbers)
