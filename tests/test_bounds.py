"""What missing cells can still change: two fillings against the enumeration of every completion."""

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from evalkit import (
    Campaign,
    CoverageError,
    InputError,
    Instances,
    Limit,
    MixError,
    ReleaseRule,
    RuleError,
    Tally,
    at_least,
    cell_mean,
    decide,
    fail_closed,
    lowest,
    mean_score,
    pass_at,
    pass_hat,
    passing_cells,
    rank,
    rank_key,
    read_campaign,
    read_rule,
    standardise,
    unit,
)
from evalkit.bounds import (
    Bounds,
    Decided,
    Promotable,
    Unavailable,
    change_bounds,
    decide_by_bounds,
    decided,
    difference,
    dropping_missing,
    key_bounds,
    observed_bounds,
    reduction_bounds,
    rerun_rows,
    standardised_bounds,
)
from evalkit.campaign import CODE, FAIL, PASS, Column
from evalkit.decide import KEEP, PROMOTE, UNDECIDED
from evalkit.reductions import Reduction

ORACLES = Path(__file__).resolve().parents[2] / "shared" / "oracles.json"


def oracle(name: str) -> dict:
    if not ORACLES.exists():
        pytest.skip("../shared/oracles.json is absent")
    return next(o for o in json.loads(ORACLES.read_text())["oracles"] if o["id"] == name)


def instances_of(rows: list[list[int | None]]) -> Instances:
    passed = np.array([sum(cell == 1 for cell in row) for row in rows], np.int64)
    failed = np.array([sum(cell == 0 for cell in row) for row in rows], np.int64)
    planned = np.array([len(row) for row in rows], np.int64)
    return Instances("A", tuple(f"i{n}" for n in range(1, len(rows) + 1)), passed, failed, planned)


def campaign_of(grids: dict[str, list[str]], groups: tuple[str, ...] | None = None, columns: dict[str, Column] | None = None) -> Campaign:
    """``{"A": ["T?", "FF"]}``: a string per instance, ``?`` not run, ``t`` a timeout."""
    codes = {"T": PASS, "F": FAIL, "?": CODE["absent"], "t": CODE["timeout"]}
    names = tuple(sorted(grids))
    cube = np.array([[[codes[cell] for cell in row] for row in grids[name]] for name in names], np.uint8).transpose(2, 0, 1).copy()
    ids = tuple(f"i{n}" for n in range(1, cube.shape[2] + 1))
    return Campaign(names, ids, tuple(map(str, range(cube.shape[0]))), cube, groups, columns=columns or {})


def completions(campaign: Campaign, reasons: tuple[str, ...] = ("absent", "timeout")) -> Iterator[tuple[Campaign, tuple[int, ...]]]:
    at = np.argwhere(np.isin(campaign.codes, [CODE[word] for word in reasons]))
    for filling in itertools.product((FAIL, PASS), repeat=len(at)):
        codes = campaign.codes.copy()
        codes[tuple(at.T)] = filling
        yield replace(campaign, codes=codes), filling


def promoted(campaign: Campaign, rule: ReleaseRule, incumbent: str) -> str | None:
    decision = decide(campaign, rule, incumbent=incumbent)
    return decision.challenger[0] if decision.verdict == PROMOTE else None


@unit("instances")
def exactly_one(instances: Instances) -> int:
    """A reader's own reduction, which a second pass lowers."""
    return int(np.count_nonzero(instances.passed == 1))


@unit("instances")
def once(instances: Instances) -> int:
    """A reader's own reduction, which no pass lowers."""
    return int(np.count_nonzero(instances.passed >= 1))


once.monotone = True  # type: ignore[attr-defined]


def test_two_of_ten_ungraded_and_six_passed_is_three_to_four_fifths_and_never_three_quarters_alone() -> None:
    view = instances_of([[1]] * 6 + [[0]] * 2 + [[None]] * 2)
    bounds = reduction_bounds(cell_mean, view)
    assert bounds == Bounds(Fraction(3, 5), Fraction(4, 5), "8 of 10 cells")
    assert str(bounds) == "0.600 to 0.800 (8 of 10 cells)"
    assert dropping_missing(view) == Fraction(3, 4)
    with pytest.raises(CoverageError):
        cell_mean(view)
    expected = oracle("man-01")["expected"]
    assert (bounds.low, bounds.high, bounds.high - bounds.low, dropping_missing(view)) == tuple(
        Fraction(expected[k]) for k in ("lower", "upper", "identified_width", "drop_missing")
    )


def test_a_row_with_a_fail_is_lost_whatever_its_missing_cell_says() -> None:
    view = instances_of([[1, None], [0, None], [1, 1], [None, None]])
    found = {r.__name__: reduction_bounds(r, view) for r in (fail_closed, passing_cells, cell_mean, at_least(1))}
    ends = {name: (b.low, b.high) for name, b in found.items() if isinstance(b, Bounds)}
    assert ends == {"fail_closed": (1, 3), "passing_cells": (3, 7), "cell_mean": (Fraction(3, 8), Fraction(7, 8)), "at_least(1)": (2, 4)}
    expected = oracle("man-02")["expected"]
    names = {"fail_closed": "fail_closed", "cells_passed": "passing_cells", "cell_mean": "cell_mean", "at_least_1": "at_least(1)"}
    assert {key: ends[names[key]] for key in names} == {key: tuple(map(Fraction, expected[key])) for key in names}


def test_bounds_of_every_counting_reduction_are_reached_and_never_passed() -> None:
    random.seed(4)
    for _ in range(30):
        rows: list[list[int | None]] = [[random.choice((0, 1, None)) for _ in range(3)] for _ in range(3)]
        view = instances_of(rows)
        gaps = [(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if cell is None]
        for reduction in (passing_cells, cell_mean, fail_closed, at_least(2), pass_at(2), pass_hat(3)):
            values = []
            for filling in itertools.product((0, 1), repeat=len(gaps)):
                full = [list(row) for row in rows]
                for (i, j), cell in zip(gaps, filling, strict=True):
                    full[i][j] = cell
                values.append(reduction(instances_of(full)))
            bounds = reduction_bounds(reduction, view)
            assert isinstance(bounds, Bounds)
            assert (bounds.low, bounds.high) == (min(values), max(values))


def test_a_readers_reduction_that_a_pass_can_lower_is_bounded_by_enumeration() -> None:
    assert reduction_bounds(exactly_one, instances_of([[None, None], [1, 1]])) == Bounds(0, 1, "2 of 4 cells")
    answer = reduction_bounds(exactly_one, instances_of([[None, None]] * 20))
    assert isinstance(answer, Unavailable)
    assert str(answer) == "unavailable: 3486784401 completions, and exactly_one does not say that it is monotone"
    answer = decided(campaign_of({"A": ["T?"], "B": ["FF"]}), ReleaseRule("r", "o", "p", exactly_one), incumbent="B")
    assert isinstance(answer, Unavailable)


def test_a_readers_reduction_that_says_it_is_monotone_needs_two_fillings() -> None:
    assert reduction_bounds(once, instances_of([[None, None]] * 20)) == Bounds(0, 20, "0 of 40 cells")
    answer = decided(campaign_of({"A": ["T?"], "B": ["FF"]}), ReleaseRule("r", "o", "p", once), incumbent="B")
    assert isinstance(answer, Decided)
    assert answer.promotes == "A"


def test_a_missing_measurement_has_no_worst_case() -> None:
    column = Column(np.array([[[1]], [[0]]], np.int64), 1, np.array([[[True]], [[False]]]))
    campaign = campaign_of({"A": ["T?"]}, columns={"score": column, "cost": column})
    for reduction in (mean_score, lowest("cost")):
        answer = reduction_bounds(reduction, campaign.of("A"))
        assert isinstance(answer, Unavailable)
        assert "1 of 2 cells" in answer.reason


def test_dropping_everything_is_refused_and_all_missing_is_zero_to_one() -> None:
    view = instances_of([[None, None]])
    assert reduction_bounds(cell_mean, view) == Bounds(Fraction(0), Fraction(1), "0 of 2 cells")
    with pytest.raises(CoverageError, match="no cell of 'A' with a verdict"):
        dropping_missing(view)


def test_sixty_ungraded_of_a_thousand_requests_stand_beside_the_rate() -> None:
    bounds = observed_bounds(Tally.of("May", {"routine": (80, 90, 100), "complex": (360, 850, 900)}))
    assert bounds.coverage == "940 of 1000 requests"
    assert (bounds.low, bounds.high) == (Fraction(44, 100), Fraction(50, 100))


def test_a_standardised_rate_is_as_wide_as_its_weighted_missing_share() -> None:
    weights = {"routine": Fraction(1, 10), "complex": Fraction(9, 10)}
    bounds = standardised_bounds(Tally.of("May", {"routine": (6, 8, 10), "complex": (5, 10, 10)}), weights)
    assert (bounds.low, bounds.high) == (Fraction(51, 100), Fraction(53, 100))
    every = [standardise(Tally.of("May", {"routine": (6 + extra, 10, 10), "complex": (5, 10, 10)}), weights) for extra in range(3)]
    assert (min(every), max(every)) == (bounds.low, bounds.high)
    expected = oracle("man-04")["expected"]
    assert (bounds.low, bounds.high, bounds.high - bounds.low) == tuple(Fraction(expected[k]) for k in ("lower", "upper", "width"))


def test_a_group_with_requests_but_no_verdict_is_bounded_and_one_without_requests_is_refused() -> None:
    weights = {"x": Fraction(1, 2), "y": Fraction(1, 2)}
    bounds = standardised_bounds(Tally.of("May", {"x": (1, 2, 2), "y": (0, 0, 3)}), weights)
    assert (bounds.low, bounds.high) == (Fraction(1, 4), Fraction(3, 4))
    with pytest.raises(MixError):
        standardised_bounds(Tally.of("May", {"x": (1, 2, 2), "y": (0, 0, 0)}), weights)
    with pytest.raises(MixError):
        standardised_bounds(Tally.of("May", {"x": (1, 2, 2)}), weights)


def test_a_change_is_bounded_arm_by_arm_and_says_when_its_sign_is_decided() -> None:
    weights = {"x": Fraction(1)}
    before, after = Tally.of("before", {"x": (5, 6, 10)}), Tally.of("after", {"x": (6, 8, 10)})
    bounds = change_bounds(before, after, weights)
    assert (bounds.low, bounds.high, bounds.sign) == (Fraction(-3, 10), Fraction(3, 10), None)
    assert bounds.coverage == "8 of 10 requests; 6 of 10 requests"
    assert change_bounds(Tally.of("b", {"x": (1, 8, 10)}), after, weights).sign == 1
    assert change_bounds(after, Tally.of("b", {"x": (1, 8, 10)}), weights).sign == -1
    same = reduction_bounds(cell_mean, instances_of([[1, 0]]))
    assert isinstance(same, Bounds)
    assert difference(same, same).sign == 0


def test_dropping_the_missing_would_prefer_b_where_nothing_is_decided() -> None:
    a = instances_of([[1]] * 6 + [[0]] * 2 + [[None]] * 2)
    b = instances_of([[1]] * 5 + [[0]] + [[None]] * 4)
    assert dropping_missing(a) < dropping_missing(b)  # 3/4 against 5/6
    one, other = reduction_bounds(cell_mean, a), reduction_bounds(cell_mean, b)
    assert isinstance(one, Bounds)
    assert isinstance(other, Bounds)
    assert difference(one, other).sign is None
    assert (difference(one, other).low, difference(one, other).high) == (Fraction(-3, 10), Fraction(3, 10))


def test_the_published_fixture_is_complete_so_everything_is_decided() -> None:
    answer = decided(read_campaign(), read_rule(), incumbent="BASELINE")
    assert isinstance(answer, Decided)
    assert (answer.winners, answer.winner_decided, answer.promotes, answer.decided) == (("CLAUDE",), True, "CLAUDE", True)
    assert rerun_rows(read_campaign(), read_rule(), incumbent="BASELINE") == []
    assert str(answer) == "Winner decided: CLAUDE. Verdict decided: CLAUDE is promoted whatever the missing cells say."


FIXTURE = {
    "CLAUDE": ["TT", "TT", "TF", "FF", "FF", "FF"],
    "MERGE": ["TT", "TF", "FT", "TF", "FT", "FF"],
    "BASELINE": ["FF", "FF", "FF", "FF", "FF", "TT"],
}


def test_one_missing_cell_of_claude_says_how_many_would_have_to_pass() -> None:
    campaign = campaign_of({**FIXTURE, "CLAUDE": ["TT", "T?", "TF", "FF", "FF", "F?"]})
    answer = decided(campaign, read_rule(), incumbent="BASELINE")
    assert isinstance(answer, Decided)
    assert not answer.decided
    assert str(answer.promotable[0]) == "CLAUDE could be promoted: at least 1 of its 2 missing cells would have to pass"
    assert answer.swing == {"CLAUDE": 2}
    assert [(row.instance, row.reason, row.could_change_verdict) for row in rerun_rows(campaign, read_rule(), incumbent="BASELINE")] == [
        ("i2", "absent", "yes"),
        ("i6", "absent", "yes"),  # it cannot complete i6, yet it moves the tie-breaker
    ]
    alone = replace(read_rule(), tie_breakers=())
    assert [row.could_change_verdict for row in rerun_rows(campaign, alone, incumbent="BASELINE")] == ["yes", "no"]


def test_a_decided_rule_promotes_over_a_missing_cell_that_cannot_matter() -> None:
    campaign = campaign_of({**FIXTURE, "MERGE": ["TT", "TF", "FT", "TF", "FT", "F?"]})
    assert decide(campaign, read_rule(), incumbent="BASELINE").verdict == PROMOTE  # MERGE is not eligible
    campaign = campaign_of({**FIXTURE, "CLAUDE": ["TT", "TT", "TF", "FF", "FF", "F?"]})
    withheld = decide(campaign, replace(read_rule(), floor=2), incumbent="BASELINE")
    assert (withheld.verdict, withheld.winner) == (UNDECIDED, ("MERGE",))
    decision = decide_by_bounds(campaign, replace(read_rule(), coverage="decided", floor=2), incumbent="BASELINE")
    assert (decision.verdict, decision.winner, decision.challenger) == (PROMOTE, ("CLAUDE",), ("CLAUDE",))
    assert (decision.conditions[0].name, decision.conditions[0].numbers) == (
        "decided whatever the missing cells say",
        "missing cells of CLAUDE taken as fail, all others as pass: CLAUDE 11 of 12 cells (1 absent)",
    )
    assert decision.standings == withheld.standings  # the report still shows what was observed


def test_a_decided_rule_keeps_the_incumbent_where_no_completion_promotes() -> None:
    campaign = campaign_of({"A": ["T?", "FF", "FF"], "B": ["TT", "TT", "F?"]})
    assert decide(campaign, read_rule(), incumbent="B").verdict == UNDECIDED
    decision = decide_by_bounds(campaign, replace(read_rule(), coverage="decided"), incumbent="B")
    assert decision.verdict == KEEP
    assert (decision.conditions[-1].state, decision.conditions[-1].name) == ("not met", "decided whatever the missing cells say")


def test_a_decided_rule_still_waits_for_signatures_and_for_cells_that_matter() -> None:
    campaign = campaign_of({"A": ["TT", "T?"], "B": ["FF", "FF"]})
    signed = replace(read_rule(), sign_offs=("safety",))
    assert decide_by_bounds(campaign, replace(signed, coverage="decided"), incumbent="B").verdict == UNDECIDED
    assert decide_by_bounds(campaign, replace(signed, coverage="decided"), incumbent="B", sign_offs={"safety": "Ada"}).verdict == PROMOTE
    open_case = campaign_of({"A": ["T?", "T?"], "B": ["FF", "FF"]})
    assert decide_by_bounds(open_case, replace(read_rule(), coverage="decided"), incumbent="B").verdict == UNDECIDED
    blocking = campaign_of({"A": ["TT", "T?"], "B": ["FF", "FF"]}, groups=("x", "safety"))
    assert (
        decide_by_bounds(blocking, replace(read_rule(), coverage="decided", blocking_groups=("safety",)), incumbent="B").verdict
        == UNDECIDED
    )


def test_an_unmeasured_cost_leaves_a_limit_open_and_the_report_says_so() -> None:
    column = Column(np.ones((2, 2, 1), np.int64), 1, np.array([[[True], [True]], [[False], [True]]]))
    campaign = campaign_of({"A": ["TT"], "B": ["FF"]}, columns={"cost": column})
    rule = replace(read_rule(), limits=(Limit("cost", "total", Fraction(5)),))
    answer = decided(campaign, rule, incumbent="B")
    assert isinstance(answer, Decided)
    assert not answer.decided
    assert str(answer).endswith("No missing cell could change it; a number with a limit is not measured yet.")
    campaign = campaign_of({"A": ["T?"], "B": ["FF"]}, columns={"cost": column})
    assert [row.could_change_verdict for row in rerun_rows(campaign, rule, incumbent="B")] == ["yes"]


def test_a_reason_that_the_rule_counts_as_fail_is_not_missing() -> None:
    campaign = campaign_of({"A": ["Tt", "TT"], "B": ["FF", "FF"]})
    counting = replace(read_rule(), count_as_fail=("timeout",))
    assert rerun_rows(campaign, counting, incumbent="B") == []
    assert [row.reason for row in rerun_rows(campaign, read_rule(), incumbent="B")] == ["timeout"]


def test_a_required_repetition_that_nobody_ran_is_missing_in_the_plan() -> None:
    campaign = campaign_of({"A": ["T"], "B": ["F"]})
    rule = replace(read_rule(), required_repetitions=("0", "1"))
    rows = rerun_rows(campaign, rule, incumbent="B")
    assert [(r.candidate, r.repetition) for r in rows] == [("A", "1"), ("B", "1")]
    assert {r.could_change_verdict for r in rows if r.candidate == "A"} == {"yes"}
    assert decide_by_bounds(campaign, replace(rule, coverage="decided"), incumbent="B").verdict == UNDECIDED


def test_key_bounds_are_the_lowest_and_the_highest_key() -> None:
    campaign = campaign_of({"A": ["T?", "F?"], "B": ["FF", "FF"]})
    ends = key_bounds((fail_closed, cell_mean), campaign.of("A"))
    every = [rank_key(full.of("A"), (fail_closed, cell_mean)) for full, _ in completions(campaign)]
    assert not isinstance(ends, Unavailable)
    assert (ends.low, ends.high) == (min(every), max(every)) == ((0, Fraction(1, 4)), (1, Fraction(3, 4)))


RULES = {
    "fail closed, then mean": ReleaseRule("r", "o", "p", fail_closed, (cell_mean,)),
    "tie-breakers may promote": ReleaseRule("r", "o", "p", fail_closed, (cell_mean,), tie_breakers_may_promote=True),
    "mean alone": ReleaseRule("r", "o", "p", cell_mean),
    "at least one, a floor": ReleaseRule("r", "o", "p", at_least(1), (pass_hat(2),), floor=2),
    "a blocking group": ReleaseRule("r", "o", "p", passing_cells, (fail_closed,), blocking_groups=("safe",)),
    "one of two draws": ReleaseRule("r", "o", "p", pass_at(2), (cell_mean,)),
    "timeouts fail": ReleaseRule("r", "o", "p", fail_closed, (cell_mean,), count_as_fail=("timeout",)),
}


@pytest.mark.parametrize("name", RULES)
def test_winner_verdict_and_fewest_cells_equal_the_enumeration_of_every_completion(name: str) -> None:
    rule = RULES[name]
    reasons = ("absent",) if rule.count_as_fail else ("absent", "timeout")
    draw = random.Random(name)
    open_cases, proven, could = 0, 0, 0
    for _ in range(25):
        grids = {c: ["".join(draw.choice("TTFF" + "?t"[: draw.choice((0, 1, 2))]) for _ in range(2)) for _ in range(3)] for c in "ABC"}
        campaign = campaign_of(grids, groups=("safe", "other", "other"))
        if int(np.isin(campaign.codes, [CODE[word] for word in reasons]).sum()) > 5:
            continue
        incumbent = "B"
        answer = decided(campaign, rule, incumbent=incumbent)
        assert isinstance(answer, Decided)
        outcomes: dict[tuple[int, ...], str | None] = {}
        winners = set()
        at = np.argwhere(np.isin(campaign.codes, [CODE[word] for word in reasons]))
        for full, filling in completions(campaign, reasons):
            outcomes[filling] = promoted(full, rule, incumbent)
            keys = {c: rank_key(full.of(c, rule.count_as_fail), rule.key) for c in full.candidates}
            winners.add(tuple(p.candidate for p in rank(keys) if p.place == 1))
        possible = {who for who in outcomes.values() if who}
        assert {p.candidate for p in answer.promotable} == possible
        assert answer.decided == (len(set(outcomes.values())) == 1)
        assert answer.promotes == (next(iter(possible)) if answer.decided and possible else None)
        assert set(answer.winners) == {c for first in winners for c in first}
        assert answer.winner_decided == (len(winners) == 1)
        for p in answer.promotable:
            own = [i for i, (_, c, _) in enumerate(at.tolist()) if campaign.candidates[c] == p.candidate]
            assert p.missing == len(own)
            assert p.needed == min(sum(f[i] == PASS for i in own) for f, who in outcomes.items() if who == p.candidate)
        rows = {(r.candidate, r.instance, r.repetition): r.could_change_verdict for r in rerun_rows(campaign, rule, incumbent=incumbent)}
        assert len(rows) == len(at)
        for i, (r, c, n) in enumerate(at.tolist()):
            flips = {f: (*f[:i], PASS + FAIL - f[i], *f[i + 1 :]) for f in outcomes}
            pivotal = any(outcomes[f] != outcomes[g] for f, g in flips.items())
            said = rows[campaign.candidates[c], campaign.instances[n], campaign.repetitions[r]] == "yes"
            assert said or not pivotal  # a "no" is proven
            could, proven = could + said, proven + pivotal
        open_cases += not answer.decided
        by_bounds = decide_by_bounds(campaign, replace(rule, coverage="decided"), incumbent=incumbent)
        if answer.promotes:
            assert by_bounds.verdict == PROMOTE
    assert open_cases >= 5
    assert could
    assert proven / could > 0.6  # and a "yes" is rarely too cautious


def test_without_an_incumbent_the_floor_decides() -> None:
    rule = ReleaseRule("r", "o", "p", fail_closed, floor=1)
    answer = decided(campaign_of({"A": ["TT", "?F"]}), rule, incumbent="none")
    assert isinstance(answer, Decided)
    assert answer.promotes == "A"
    answer = decided(campaign_of({"A": ["T?", "?F"]}), rule, incumbent="none")
    assert isinstance(answer, Decided)
    assert [(p.needed, p.missing) for p in answer.promotable] == [(1, 2)]


def test_a_thousand_instances_with_sixty_missing_cells_answer_at_once() -> None:
    rng = np.random.default_rng(1)
    codes = np.where(rng.random((3, 4, 1000)) < 0.6, PASS, FAIL).astype(np.uint8)
    codes.reshape(-1)[rng.choice(codes.size, 240, replace=False)] = CODE["timeout"]
    names = tuple(f"i{n}" for n in range(1000))
    campaign = Campaign(("A", "B", "C", "D"), names, ("0", "1", "2"), codes)
    answer = decided(campaign, read_rule(), incumbent="D")
    assert isinstance(answer, Decided)
    assert len(rerun_rows(campaign, read_rule(), incumbent="D")) == 240
    for p in answer.promotable:
        assert p.needed is not None
        assert 0 <= p.needed <= p.missing


ALONE = ReleaseRule("r", "o", "p", fail_closed)


def answer_to(grids: dict[str, list[str]], rule: ReleaseRule = ALONE, incumbent: str = "B") -> Decided:
    answer = decided(campaign_of(grids), rule, incumbent=incumbent)
    assert isinstance(answer, Decided)
    return answer


def costs(measured: list[list[list[bool]]]) -> Column:
    """Every cost is 1, where it is measured: repetitions, of candidates, of instances."""
    return Column(np.ones(np.shape(measured), np.int64), 1, np.array(measured))


def test_bounds_print_whole_numbers_whole_and_one_number_where_both_are_equal() -> None:
    assert str(Bounds(2, 3, "c")) == "2 to 3 (c)"
    assert str(Bounds(Fraction(60_000, 100_001), Fraction(60_001, 100_001), "c")) == "0.59999 to 0.60000 (c)"  # not 0.600 to 0.600
    assert str(Bounds(Fraction(-1, 2), Fraction(3), "c")) == "-0.500 to 3 (c)"
    assert str(Bounds(Fraction(1, 2), Fraction(2, 4), "c")) == "0.500 (c)"
    assert str(Bounds(Fraction(2), 2, "c")) == "2 (c)"


def test_a_value_is_decided_where_nothing_missing_can_change_it() -> None:
    lost, open_ = (reduction_bounds(fail_closed, instances_of([[1, 1], row])) for row in ([0, None], [1, None]))
    assert isinstance(lost, Bounds)
    assert isinstance(open_, Bounds)
    assert (lost.decided, open_.decided) == (True, False)


def test_a_challenger_that_could_be_promoted_says_what_of_its_own_it_takes() -> None:
    assert str(Promotable("A", False, 2, 1)) == "A could be promoted: at least 1 of its 2 missing cells would have to pass"
    assert str(Promotable("A", False, 2, 0)) == "A could be promoted even if its missing cells (2) and those of the others fail"
    assert str(Promotable("A", False, 2, None)) == "A could be promoted"  # not searched
    assert str(Promotable("A", False, 0, 0)) == "A could be promoted"  # it lacks none: the cells are another's


def test_the_answer_names_the_cells_that_could_change_it_or_says_that_none_can() -> None:
    assert str(answer_to({"A": ["TT", "T?"], "B": ["T?", "FF"]})) == (
        "Winner not decided: A, B could come first. Verdict not decided: A could be promoted even if its missing cells (1) "
        "and those of the others fail. Missing cells that could change it: A 1, B 1."
    )
    assert str(answer_to({"A": ["T?", "FF"], "B": ["TT", "TT"]})) == (
        "Winner decided: B. Verdict decided: no completion of the missing cells promotes a challenger."
    )


def test_what_is_decided_refuses_whom_and_what_it_cannot_compare() -> None:
    campaign = campaign_of({"A": ["T?"], "B": ["FF"]})
    with pytest.raises(InputError, match="incumbent 'nobody'"):
        decided(campaign, ALONE, incumbent="nobody")
    with pytest.raises(InputError, match="only the incumbent"):
        decided(campaign_of({"B": ["F?"]}), ALONE, incumbent="B")
    with pytest.raises(RuleError, match="no numeric column 'cost'"):
        decided(campaign, replace(ALONE, limits=(Limit("cost", "total", Fraction(5)),)), incumbent="B")


def test_only_an_incumbent_that_can_still_draw_level_has_cells_that_matter() -> None:
    grids = {"A": ["TT", "TT", "T?", "FF"], "B": ["T?", "FF", "FF", "FF"], "C": ["TT", "TT", "FF", "FF"]}
    assert answer_to(grids).swing == {"A": 1}  # it may lead C alone; B comes to 1 at most
    assert answer_to({**grids, "B": ["T?", "TT", "FF", "FF"]}).swing == {"A": 1, "B": 1}


@pytest.mark.parametrize("incumbent", ["alpha", "zeta"])
def test_the_name_of_the_incumbent_does_not_matter(incumbent: str) -> None:
    assert answer_to({"m": ["TT"], incumbent: ["??"]}, incumbent=incumbent).swing == {incumbent: 2}


@pytest.mark.parametrize(("challenger", "incumbent"), [("A", "B"), ("B", "A")])
def test_a_cell_that_cannot_move_the_key_matters_where_a_condition_on_the_challenger_needs_it(challenger: str, incumbent: str) -> None:
    grids = {challenger: ["T?", "Tt", "TT"], incumbent: ["T?", "TT", "??"]}
    rule = ReleaseRule("r", "o", "p", at_least(1))
    needed = {(challenger, "i1", "1"): "yes", (challenger, "i2", "1"): "no"}
    needed |= {(incumbent, "i1", "1"): "no", (incumbent, "i3", "0"): "yes", (incumbent, "i3", "1"): "yes"}
    measured = [[[True, True, True]] * 2, [[False, True, True]] * 2]
    blocked = campaign_of(grids, groups=("safe", "other", "other")), replace(rule, blocking_groups=("safe",))
    limited = campaign_of(grids, columns={"cost": costs(measured)}), replace(rule, limits=(Limit("cost", "total", Fraction(9)),))
    for campaign, whole in (blocked, limited):
        rows = rerun_rows(campaign, whole, incumbent=incumbent)
        assert {(r.candidate, r.instance, r.repetition): r.could_change_verdict for r in rows} == needed
        answer = decided(campaign, whole, incumbent=incumbent)
        assert isinstance(answer, Decided)
        assert answer.swing == {challenger: 1, incumbent: 2}


def test_a_verdict_that_is_missing_moves_no_measured_tie_breaker() -> None:
    column = costs([[[True, True]] * 2] * 2)
    campaign = campaign_of({"A": ["T?", "F?"], "B": ["FF", "FF"]}, columns={"score": column, "cost": column})
    rule = replace(ALONE, tie_breakers=(mean_score, lowest("cost")))
    answer = decided(campaign, rule, incumbent="B")
    assert isinstance(answer, Decided)
    assert [(p.candidate, p.needed) for p in answer.promotable] == [("A", 1)]
    assert [(r.instance, r.could_change_verdict) for r in rerun_rows(campaign, rule, incumbent="B")] == [("i1", "yes"), ("i2", "no")]


def test_a_readers_reduction_is_tried_on_every_completion_and_on_no_other() -> None:
    @unit("cells")
    def minus_passes(instances: Instances) -> int:
        return -int(instances.passed.sum())

    assert reduction_bounds(minus_passes, instances_of([[1, None], [0, 1], [None, None]])) == Bounds(-5, -2, "3 of 6 cells")


@pytest.mark.parametrize("module", ["__main__", "my_reductions"])  # a notebook's cell, and a file's
def test_a_readers_reduction_is_never_taken_for_a_built_in_wherever_it_is_written(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exactly_one, "__module__", module)
    assert reduction_bounds(exactly_one, instances_of([[None, None], [1, None]])) == Bounds(0, 2, "1 of 4 cells")
    answer = decided(campaign_of({"A": ["T?"], "B": ["FF"]}), replace(ALONE, reduction=exactly_one), incumbent="B")
    assert str(answer) == "unavailable: exactly_one does not say that it is monotone, so two fillings do not bound it"


def test_twenty_thousand_completions_are_tried_and_one_more_is_too_many() -> None:
    assert reduction_bounds(exactly_one, instances_of([[None] * 19_999])) == Bounds(0, 1, "0 of 19999 cells")
    answer = reduction_bounds(exactly_one, instances_of([[None] * 20_000]))
    assert str(answer) == "unavailable: 20001 completions, and exactly_one does not say that it is monotone"


def test_a_readers_reduction_decides_where_no_cell_is_missing() -> None:
    answer = answer_to({"A": ["TF"], "B": ["TT"]}, replace(ALONE, reduction=exactly_one))
    assert (answer.promotes, answer.winners) == ("A", ("A",))


def test_the_fewest_passes_are_searched_among_four_hundred_cells_and_for_built_ins() -> None:
    half = ReleaseRule("r", "o", "p", at_least(200))
    assert [(p.missing, p.needed) for p in answer_to({"A": ["?" * 400], "B": ["F" * 400]}, half).promotable] == [(400, 200)]
    assert [(p.missing, p.needed) for p in answer_to({"A": ["?" * 401], "B": ["F" * 401]}, half).promotable] == [(401, None)]
    own = answer_to({"A": ["??"], "B": ["FF"]}, replace(ALONE, reduction=once))
    assert [(p.missing, p.needed) for p in own.promotable] == [(2, None)]


@pytest.mark.parametrize("tie_breaker", [at_least(1), pass_at(2)])
@pytest.mark.parametrize("others", ["?????", "F????"])
def test_five_passes_complete_an_instance_however_the_tie_breaker_likes_them_spread(tie_breaker: Reduction, others: str) -> None:
    answer = answer_to({"A": [others] * 4 + ["?????"], "B": ["FFFFF"] * 5}, replace(ALONE, tie_breakers=(tie_breaker,)))
    assert [p.needed for p in answer.promotable] == [5]


@pytest.mark.parametrize("incumbent", ["A", "Z"])
def test_the_worst_case_fails_the_challengers_missing_cells_and_passes_everybody_elses(incumbent: str) -> None:
    campaign = campaign_of({"A": ["T?", "FF", "FF"], "M": ["TT", "TT", "T?"], "Z": ["FF", "T?", "FF"]})
    decision = decide_by_bounds(campaign, replace(ALONE, coverage="decided"), incumbent=incumbent)
    assert (decision.verdict, decision.challenger) == (PROMOTE, ("M",))
    assert {c.name: c.numbers for c in decision.conditions}["strictly above the incumbent"] == (
        f"M 2 of 3 instances > {incumbent} 1 of 3 instances, with every missing cell filled for the worst case"
    )


def test_a_decided_rule_that_cannot_tell_says_what_the_observed_cells_say() -> None:
    campaign, rule = campaign_of({"A": ["T?", "T?"], "B": ["FF", "FF"]}), replace(ALONE, coverage="decided")
    assert decide_by_bounds(campaign, rule, incumbent="B") == decide(campaign, rule, incumbent="B")


def test_a_decided_rule_withholds_the_best_of_the_complete_and_names_the_missing_cells() -> None:
    campaign = campaign_of({"A": ["TF"], "B": ["FF"], "C": ["??"]})
    odd = "; unavailable: exactly_one does not say that it is monotone, so two fillings do not bound it"
    for reduction, more in ((cell_mean, ""), (exactly_one, odd)):
        rule = replace(ALONE, reduction=reduction, coverage="decided")
        observed, decision = decide(campaign, rule, incumbent="B"), decide_by_bounds(campaign, rule, incumbent="B")
        assert (observed.verdict, decision.verdict) == (PROMOTE, UNDECIDED)
        assert decision.conditions[:-1] == observed.conditions
        last = decision.conditions[-1]
        assert (last.state, last.numbers) == ("not evaluated", f"C 0 of 2 cells (2 absent){more}")


def test_a_tie_that_no_completion_breaks_is_undecided_and_does_not_keep_the_incumbent() -> None:
    rule = replace(ALONE, coverage="decided")
    tied = campaign_of({"A": ["TT", "FF"], "B": ["FF", "FF"], "C": ["TT", "?F"]})
    assert decide_by_bounds(tied, rule, incumbent="B").verdict == UNDECIDED
    # At A's best it ties with C; at C's best C stands alone, and fails the blocking group.
    half = campaign_of({"A": ["T?", "FF"], "B": ["FF", "FF"], "C": ["FF", "TT"]}, groups=("safe", "other"))
    assert decide_by_bounds(half, replace(rule, blocking_groups=("safe",)), incumbent="B").verdict == UNDECIDED
