"""Public results: what the fixture holds is what was published, and what the two notebooks print follows from it."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalkit import (
    CoverageError,
    InputError,
    RuleError,
    Tally,
    at_least,
    cell_mean,
    compare,
    draw,
    fail_closed,
    lesson,
    observed_rate,
    pass_at,
    pass_hat,
    read_campaign,
    reverses,
    standardise,
)
from evalkit.campaign import Instances, from_histogram
from evalkit.records import bundled
from evalkit.reweighting import Reference

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "real"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="the real result files (../shared/real) are not here")
PUBLIC: dict[str, Any] = json.loads(bundled("fixtures/public_figures.json").read_text("utf-8"))
BOARD, AIRLINE, METR, BERKELEY, STONES = (PUBLIC[key] for key in ("terminal_bench", "tau_bench", "metr", "berkeley", "kidney_stones"))
AGENTS = {name: from_histogram(name, counts) for name, counts in BOARD["histograms"].items()}


def printed(stem: str) -> str:
    cells = json.loads((ROOT / "notebooks" / f"{stem}.ipynb").read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return "\n".join("".join(output.get("text") or output["data"]["text/plain"]) for output in outputs)


# Histograms


def test_a_histogram_gives_the_reductions_of_the_cells_it_counts() -> None:
    fixture = read_campaign()
    for name in fixture.candidates:
        view = fixture.of(name)
        counts = np.bincount(view.passed, minlength=len(fixture.repetitions) + 1).tolist()
        apart = from_histogram(name, counts)
        for reduction in (cell_mean, fail_closed, at_least(1), pass_at(2), pass_hat(2)):
            assert reduction(apart) == reduction(view), (name, reduction)


@pytest.mark.parametrize("histogram", [[], [3], [0, 0], [1, -1], [1.0, 2], [True, 1], ["x", 1], [10**18, 1]], ids=repr)
def test_what_is_no_histogram_is_refused(histogram: list[Any]) -> None:
    with pytest.raises(InputError):
        from_histogram("A", histogram)


def test_two_histograms_share_no_instance() -> None:
    one, two = (set(view.ids) for view in list(AGENTS.values())[:2])
    assert not one & two
    assert len(one) == len(two) == 80


def test_the_dial_of_candidates_apart_is_the_dial_of_their_campaign() -> None:
    fixture = read_campaign()
    assert draw.dial_apart({name: fixture.of(name) for name in fixture.candidates}).alt == draw.dial(fixture).alt
    assert (
        lesson.ranking({name: fixture.of(name) for name in fixture.candidates}, fail_closed).text
        == lesson.ranking(fixture, fail_closed).text
    )


def test_candidates_apart_are_refused_where_nothing_can_be_drawn() -> None:
    short = from_histogram("A", [1, 2])
    gap = Instances("G", ("x",), np.array([1]), np.array([0]), np.array([2]))
    with pytest.raises(InputError, match="no candidate"):
        draw.dial_apart({})
    with pytest.raises(RuleError, match="k = 2"):
        draw.dial_apart({"A": short, "B": from_histogram("B", [1, 2, 3])})
    with pytest.raises(CoverageError, match="no complete candidate"):
        draw.dial_apart({"G": gap})
    assert "Not drawn, incomplete: G, 1 of 2 cells" in draw.dial_apart({"G": gap, "B": from_histogram("B", [1, 2, 3])}).alt


# What was published


def test_every_figure_names_its_source() -> None:
    assert all(len(figure["source"]) > 40 for figure in PUBLIC.values())
    told = (ROOT / "fixtures" / "SOURCES.md").read_text("utf-8")
    assert all(f"`public_figures.json`, `{name}`" in told for name in PUBLIC)


@real
def test_the_figures_are_those_that_were_counted() -> None:
    counted = json.loads((SHARED / "figures.json").read_text("utf-8"))
    board, metr = counted["terminal_bench_core_0_1_1"], counted["metr_o1_two_releases"]
    assert set(map(tuple, BOARD["histograms"].values())) <= set(map(tuple, board["histograms"].values()))
    assert sorted(BOARD["ungraded"].values()) == sorted(board["ungraded_cells"].values())
    assert AIRLINE["histogram"] == counted["tau_bench_airline_gpt_4o"]["histogram"]
    assert {side: METR[side] for side in ("before", "after")} == {side: metr[side] for side in ("before", "after")}
    assert METR["rival"]["runs"] in metr["comparison"].values()
    assert {sex: BERKELEY[sex] for sex in ("men", "women")} == counted["berkeley_1973"]["admitted_applied"]
    assert all(STONES[way] == counted["kidney_stones_1986"][way] for way in ("open", "pcnl"))


@real
def test_the_tau_bench_histogram_is_that_of_the_published_trials() -> None:
    trials = json.loads(gzip.decompress((SHARED / "tau-bench" / "gpt-4o-airline.json.gz").read_bytes()))
    passed = Counter(trial["task_id"] for trial in trials if abs(trial["reward"] - 1) < 1e-6)
    times = Counter(passed[task] for task in {trial["task_id"] for trial in trials})
    assert [times[n] for n in range(5)] == AIRLINE["histogram"]


@real
def test_berkeley_is_the_r_data_set() -> None:
    counts: dict[str, dict[str, list[int]]] = {"Male": {}, "Female": {}}
    with (SHARED / "oracles" / "UCBAdmissions.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            pair = counts[row["Gender"]].setdefault(row["Dept"], [0, 0])
            pair[0] += int(row["Freq"]) * (row["Admit"] == "Admitted")
            pair[1] += int(row["Freq"])
    assert counts == {"Male": BERKELEY["men"], "Female": BERKELEY["women"]}


# What follows


def test_the_published_pass_hat_is_ours_to_the_last_digit() -> None:
    gpt = from_histogram("gpt-4o", AIRLINE["histogram"])
    assert {k: f"{float(pass_hat(int(k))(gpt)):.3f}" for k in "1234"} == AIRLINE["pass_hat"]
    assert all(f"pass^{k}      {said}       {said}" in printed("09_real_campaigns") for k, said in AIRLINE["pass_hat"].items())


def test_the_mean_and_the_all_five_count_choose_different_leaders() -> None:
    means = {name: Fraction(sum(n * tasks for n, tasks in enumerate(counts)), 400) for name, counts in BOARD["histograms"].items()}
    assert means == {name: cell_mean(view) for name, view in AGENTS.items()}
    assert max(means, key=lambda name: means[name]) == "Droid Opus"
    assert max(AGENTS, key=lambda name: fail_closed(AGENTS[name])) == "OB-1"
    assert means["Droid Opus"] == Fraction(5875, 10000)
    assert (fail_closed(AGENTS["OB-1"]), fail_closed(AGENTS["Droid Opus"])) == (38, 35)
    assert "ungraded trials counted as fail" in printed("09_real_campaigns")


def test_the_trials_without_a_verdict_decide_who_leads_the_mean() -> None:
    graded = {name: Fraction(int(view.passed.sum()), 400 - BOARD["ungraded"][name]) for name, view in AGENTS.items()}
    assert max(graded, key=lambda name: graded[name]) == "OB-1"
    assert "227 of 362 = 0.627" in printed("09_real_campaigns")


def test_o1_falls_18_points_and_no_group_falls() -> None:
    before, after = (Tally.of(side, METR[side]) for side in ("before", "after"))
    assert observed_rate(after) - observed_rate(before) == Fraction(363, 1014) - Fraction(350, 651)
    assert reverses(before, after)
    change = compare(before, after, Reference("r", "g", {"AI R&D": Fraction(1, 2), "other": Fraction(1, 2)}, "v")).decomposition
    assert change is not None
    assert 0 < change.rate_effect < Fraction(3, 100_000)
    rival = Fraction(*METR["rival"]["runs"])
    assert observed_rate(before) > rival > observed_rate(after)
    assert "change -18.0 points" in printed("10_real_mixes")


def test_berkeley_turns_at_the_mix_of_all_applicants_but_is_no_full_reversal() -> None:
    men, women = (Tally.of(sex, BERKELEY[sex]) for sex in ("men", "women"))
    applied = {d: BERKELEY["men"][d][1] + BERKELEY["women"][d][1] for d in men.groups}
    both = {d: Fraction(n, sum(applied.values())) for d, n in applied.items()}
    assert (observed_rate(men), observed_rate(women)) == (Fraction(1198, 2691), Fraction(557, 1835))
    assert [f"{float(standardise(tally, both)):.7f}" for tally in (men, women)] == ["0.3873186", "0.4299554"]
    assert not reverses(men, women)
    assert "standardised to both            38.7%  43.0%   +4.3 points" in printed("10_real_mixes")


def test_kidney_stones_turn_too() -> None:
    ways = {name: Tally.of(name, STONES[name]) for name in ("open", "pcnl")}
    everyone = {"small": Fraction(357, 700), "large": Fraction(343, 700)}
    assert observed_rate(ways["open"]) < observed_rate(ways["pcnl"])
    assert [f"{float(standardise(tally, everyone)):.6f}" for tally in ways.values()] == ["0.832546", "0.778875"]


# A reader's own files


def test_09_takes_a_folder_of_logs_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from papermill import execute_notebook

    monkeypatch.chdir(tmp_path)
    given = {"campaign": str(ROOT / "fixtures" / "sources" / "inspect"), "scorer": "match", "incumbent": "alpha"}
    execute_notebook(
        str(ROOT / "notebooks" / "09_real_campaigns.ipynb"), "out.ipynb", parameters=given, progress_bar=False, log_output=False
    )
    said = (tmp_path / "out.ipynb").read_text("utf-8")
    assert "Inspect log 0.3.100: 2 files, 12 rows read = 12 cells" in said
    assert "UNDECIDED" in said
