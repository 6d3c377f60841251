"""Published and independently computed answers, by name, from ../shared/oracles.json; skipped where that file is absent."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from evalkit import (
    CoverageError,
    InputError,
    Instances,
    MixError,
    RankKeyError,
    Reference,
    ReleaseRule,
    RuleError,
    Tally,
    at_least,
    cell_mean,
    decide,
    decompose,
    dominates,
    equal_weights,
    fail_closed,
    group_rates,
    observed_mix,
    observed_rate,
    pass_at,
    pass_hat,
    rank,
    reverses,
    standardise,
)
from evalkit._exact import measurement, rational
from evalkit.campaign import Inventory
from evalkit.decide import KEEP
from evalkit.sources import table

SHARED = Path(__file__).resolve().parents[2] / "shared" / "oracles.json"
ORACLES = {entry["id"]: entry for entry in json.loads(SHARED.read_text(encoding="utf-8"))["oracles"]} if SHARED.exists() else {}
F = Fraction


def fractions(mapping):
    return {key: F(value) for key, value in mapping.items()}


def view(cells, planned=None):
    """Instances from 0/1 lists per instance, ragged ones too: the formula is per instance."""
    rows = list(cells.values()) if isinstance(cells, dict) else cells
    counts = np.array([(sum(row), len(row) - sum(row), planned or len(row)) for row in rows], np.int64).T
    return Instances("A", tuple(f"i{n}" for n in range(len(rows))), *counts)


def whole_counts(period, rates, mix):
    """A tally with exactly these group rates and this mix."""
    size = 1
    for group in rates:
        size = math.lcm(size, (mix[group] / rates[group].denominator).denominator)
    assessed = {group: mix[group] * size for group in mix}
    return Tally.of(period, {group: (int(rates[group] * n), int(n)) for group, n in assessed.items()})


def red_01(given, expected):
    for name, cells in given["cells"].items():
        v, e = view(cells), expected[name]
        assert (cell_mean(v), fail_closed(v), at_least(1)(v), at_least(2)(v)) == (
            F(e["cell_mean"]),
            e["fail_closed"],
            e["at_least_1"],
            e["at_least_2"],
        )


def red_ragged(given, expected):
    v = view(given["cells"])
    assert cell_mean(v) == F(expected["pooled_cell_mean"])
    assert pass_hat(1)(v) == F(expected["mean_of_instance_means"])
    with pytest.raises(CoverageError, match="i0"):
        fail_closed(view(given["cells"], planned=3))
    with pytest.raises(RuleError):
        pass_hat(2)(v)


def red_tau_ragged(given, expected):
    assert pass_hat(given["k"])(view(given["trials"])) == F(expected["correct_mean_pass_hat_2"]) != F(expected["tau_bench_formula"])


def pass_k(given, expected):
    v = view([[1] * given["c"] + [0] * (given["n"] - given["c"])])
    assert [pass_at(k)(v) for k in given["k"]] == [F(x) for x in expected["pass_at_k"]]
    assert [pass_hat(k)(v) for k in given["k"]] == [F(x) for x in expected["pass_hat_k"]]
    for reduction in (pass_at, pass_hat):
        with pytest.raises(RuleError):
            reduction(given["n"] + 1)(v)


def passk_fixture(given, expected):
    for name, cells in given["cells"].items():
        v, e = view(cells), expected[name]
        assert (pass_hat(2)(v), pass_at(2)(v)) == (F(e["pass_hat_2"]), F(e["pass_at_2"]))
        assert F(e["plugin_mean_p_squared"]) != pass_hat(2)(v) != F(e["pooled_mean_squared"]) == cell_mean(v) ** 2


def passk_k_gt_n(given, expected):
    assert expected.startswith("raise")
    v = view([[1] * given["c"] + [0] * (given["n"] - given["c"])])
    for reduction in (pass_at, pass_hat, at_least):
        with pytest.raises(RuleError):
            reduction(given["k"])(v)


def rank_02(given, expected):
    assert given == {"a": "mean of ten scores 1/10", "b": "1/10"}
    assert expected == "tie"
    assert [p.place for p in rank({"a": (sum([measurement("0.1")] * 10) / 10,), "b": (F(given["b"]),)})] == [1, 1]


def rank_03(given, expected):
    assert expected == "raise"
    with pytest.raises(RankKeyError):
        rank({"a": (float(given["a"][0]),), "b": (int(given["b"][0]),)})


def rank_04(given, expected):
    # Two instances resolved and a mean of 1/2, twice: a key as long as the oracle's, from cells.
    assert given["candidate"] == given["incumbent"] == [2, "1/2"]
    lines = [f"{name},i{i},{r},{int(i < 2)}" for name in ("new", "old") for i in range(4) for r in range(2)]
    campaign = table.campaign("\n".join(["candidate,instance,repetition,outcome", *lines]).encode())
    for may in (False, True):
        decision = decide(campaign, ReleaseRule("r", "o", "p", fail_closed, (cell_mean,), may), incumbent="old")
        assert decision.standings[0].key == (2, F(1, 2))
        assert decision.winner == ("new", "old")
        assert decision.verdict == KEEP
    assert expected["promote"] is False


def rank_05(given, expected):
    assert expected.startswith("raise")
    with pytest.raises(RankKeyError):
        rank({"a": tuple(map(F, given["a"])), "b": tuple(map(F, given["b"]))})


def tally_of(period, counts):
    return Tally.of(period, {group: (counts["x"][group], counts["n"][group]) for group in counts["n"]})


def std_01(given, expected):
    for name in ("baseline", "candidate"):
        tally, e = tally_of(name, given[name]), fractions(expected[name])
        found = observed_rate(tally), standardise(tally, fractions(given["reference"])), standardise(tally, equal_weights(tally.groups))
        assert found == (e["observed"], e["reference"], e["equal"])


def std_02(given, expected):
    tallies = {
        sex: Tally.of(sex, {g: (given["admitted"][sex][g], n) for g, n in applied.items()}) for sex, applied in given["applied"].items()
    }
    total = Tally.of("all", {g: (0, sum(given["applied"][sex][g] for sex in tallies)) for g in given["applied"]["male"]})
    for sex, tally in tallies.items():
        rates = observed_rate(tally), standardise(tally, observed_mix(total)), standardise(tally, equal_weights(tally.groups))
        assert rates == tuple(F(expected[sex][key]["fraction"]) for key in ("observed", "total_mix", "equal"))
    # Berkeley is not a reversal in every group: men were ahead in two departments.
    assert not reverses(tallies["female"], tallies["male"])


def std_03(given, expected):
    for name, counts in given["groups"].items():
        tally = tally_of(name, counts)
        found = observed_rate(tally), standardise(tally, fractions(given["reference"]))
        assert found == tuple(F(expected[name][key]["fraction"]) for key in ("observed", "total_mix"))
    assert reverses(tally_of("A", given["groups"]["A"]), tally_of("B", given["groups"]["B"]))


def std_refused(given, expected):
    assert expected.startswith("raise")
    with pytest.raises(MixError, match="complex" if "complex" in expected else "new"):
        standardise(tally_of("candidate", given["candidate"]), fractions(given["reference"]))


def std_07(given, expected):
    assert expected.startswith("accept")
    weights = {f"g{n}": rational(text) for n, text in enumerate(given["weights"])}
    assert sum(Reference("r", "rule", weights, "v").weights.values()) == 1
    with pytest.raises(InputError):
        rational(float(given["weights"][0]))


def dec_exact(given, expected):
    before = whole_counts("before", fractions(given["r0"]), fractions(given["w0"]))
    after = whole_counts("after", fractions(given["r1"]), fractions(given["w1"]))
    assert (group_rates(before), observed_mix(before)) == (fractions(given["r0"]), fractions(given["w0"]))
    split = decompose(before, after)
    assert (split.change, split.rate_effect, split.mix_effect) == (
        F(expected["total"]),
        F(expected["rate_effect"]),
        F(expected["mix_effect"]),
    )
    for key in ("rate_by_group", "mix_by_group"):
        if key in expected:
            assert getattr(split, key) == fractions(expected[key])


def dec_03(given, expected):
    """Percentages as printed; the sizes of both years add up to 100.0."""

    def tally(year):
        mix = {str(g): F(str(size)) / 100 for g, size in enumerate(given[f"size_{year}"])}
        return whole_counts(str(year), {str(g): F(str(rate)) / 100 for g, rate in enumerate(given[f"rate_{year}"])}, mix)

    split = decompose(tally(1970), tally(1985))
    for value, key in ((split.mix_effect, "mix_effect"), (split.rate_effect, "rate_effect"), (split.change, "total")):
        assert abs(100 * value - F(str(expected[key]))) <= F("0.00005")
    assert abs(100 * split.mix_effect / split.change - F(str(expected["mix_share_pct"]))) <= F("0.005")


def dom(given, expected):
    a, b = (Tally.of(name, {g: (F(r).numerator, F(r).denominator) for g, r in given[name].items()}) for name in ("a", "b"))
    assert dominates(a, b) is expected["a_dominates"]
    differences = [group_rates(a)[g] - group_rates(b)[g] for g in a.groups]
    if "min_diff" in expected:
        assert (min(differences), max(differences)) == (F(expected["min_diff"]), F(expected["max_diff"]))
    if expected.get("weakly") == "equal":
        assert set(differences) == {0}
        assert not dominates(b, a)


def rows(*cells):
    return "\n".join(["candidate,instance,repetition,outcome", *(",".join(map(str, cell)) for cell in cells)]).encode()


def hyg_01(given, expected):
    assert expected.startswith("raise")
    with pytest.raises(InputError, match=r"2 rows for the cell .'c', 'i1', repetition '0'."):
        table.campaign(rows(*given["records"]))


def hyg_02(given, expected):
    assert "[1,0,0]" in expected
    campaign = table.campaign(rows(*(("A", f"i{n}", 0, word) for n, word in enumerate(given["values"]))))
    assert campaign.of("A").passed.tolist() == [1, 0, 0]
    assert cell_mean(campaign.of("A")) == F(1, 3)


def hyg_03(given, expected):
    cells = [(name, instance, 0, word) for name, instances in given.items() for instance, word in instances.items()]
    campaign = table.campaign(rows(*cells))
    assert cell_mean(campaign.of("A")) == F(expected["A_mean"])
    assert campaign.missing("B") == [("i3", "0", "absent")]
    with pytest.raises(CoverageError):
        cell_mean(campaign.of("B"))
    assert not table.campaign(rows(*cells), inventory=Inventory(("i1", "i2", "i3"))).of("B").complete


def hyg_04(given, expected):
    words = given["scores"]
    with pytest.raises(InputError, match="'nan'"):
        table.campaign(rows(*(("A", f"i{n}", 0, word) for n, word in enumerate(words))))
    campaign = table.campaign(rows(*(("A", f"i{n}", 0, "ungraded" if word == "nan" else word) for n, word in enumerate(words))))
    v = campaign.of("A")
    assert sum(campaign.coverage("A").missing.values()) == expected["missing"]
    assert (F(int(v.passed.sum()), 4), F(4 - int(v.failed.sum()), 4)) == (F(expected["lower"]), F(expected["upper"]))


def hyg_05(given, expected):
    assert expected.startswith("raise")
    for reduction in (fail_closed, at_least(1), cell_mean, pass_hat(1)):
        with pytest.raises(CoverageError):
            reduction(view(given))


def hyg_08(given, expected):
    """The fail-closed rate of independent cells is p^R; exactly, from a table in which every pattern occurs as often as it is likely."""
    p = F(given["true_p"])
    for repetitions, rate in zip(given["R"], expected["expected_fail_closed_rate"], strict=True):
        assert p**repetitions == F(rate)
    patterns = [[int(a), int(b)] for a in "1111111110" for b in "1111111110"]
    assert F(fail_closed(view(patterns)), len(patterns)) == F(expected["expected_fail_closed_rate"][1])
    # so candidates with different numbers of repetitions are never compared: the shorter one is incomplete
    campaign = table.campaign(rows(("A", "i1", 0, 1), ("A", "i1", 1, 1), ("B", "i1", 0, 1)))
    assert not campaign.of("B").complete


CHECKS = {
    "red-01": red_01, "red-ragged": red_ragged, "red-tau-ragged": red_tau_ragged, "passk-5-2": pass_k, "passk-8-6": pass_k, "passk-1-1": pass_k,
    "passk-fixture": passk_fixture, "passk-k-gt-n": passk_k_gt_n, "rank-02": rank_02, "rank-03": rank_03, "rank-04": rank_04, "rank-05": rank_05, "std-01": std_01,
    "std-02": std_02, "std-03": std_03, "std-04": std_refused, "std-06": std_refused, "std-07": std_07, "dec-01": dec_exact, "dec-02": dec_exact, "dec-03": dec_03,
    "dom-01": dom, "dom-03": dom, "hyg-01": hyg_01, "hyg-02": hyg_02, "hyg-03": hyg_03, "hyg-04": hyg_04, "hyg-05": hyg_05, "hyg-08": hyg_08,
}  # fmt: skip
ELSEWHERE = {"dec-04": "a split into three factors, which the kit does not offer"}
TOPICS = {"reductions", "rank keys", "pass@k / pass^k", "direct standardisation", "rate/mix decomposition", "dominance over all mixes"}


@pytest.mark.skipif(not ORACLES, reason="../shared/oracles.json is absent")
@pytest.mark.parametrize("name", [*CHECKS, *(name for name in ORACLES if name not in CHECKS)])
def test_oracle(name):
    if name not in CHECKS:
        pytest.skip(ELSEWHERE.get(name) or ORACLES[name]["topic"])
    CHECKS[name](ORACLES[name]["input"], ORACLES[name]["expected"])


@pytest.mark.skipif(not ORACLES, reason="../shared/oracles.json is absent")
def test_every_oracle_of_the_core_is_checked():
    core = {name for name, entry in ORACLES.items() if entry["topic"] in TOPICS} | {f"hyg-0{n}" for n in (1, 2, 3, 4, 5, 8)}
    assert core - set(CHECKS) == {"dec-04"}
    assert set(CHECKS) <= core
