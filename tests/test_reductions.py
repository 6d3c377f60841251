"""Reductions: one candidate's instances to one exact number whose unit is stated."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from evalkit import (
    CoverageError,
    Instances,
    RuleError,
    at_least,
    cell_mean,
    fail_closed,
    lowest,
    mean_score,
    pass_at,
    pass_hat,
    passing_cells,
    rank_key,
    read_campaign,
    unit,
)
from evalkit.campaign import Column
from evalkit.reductions import counted, name_of, named, unit_of


def instances(*passed_of, ids=None, **more):
    """Instances from (passed, failed, planned) triples."""
    passed, failed, planned = (np.array(column, np.int64) for column in zip(*passed_of, strict=True))
    return Instances("A", ids or tuple(f"i{n}" for n in range(len(passed))), passed, failed, planned, **more)


@pytest.fixture(scope="module")
def published():
    campaign = read_campaign()
    return {name: campaign.of(name) for name in campaign.candidates}


def test_the_published_counts(published):
    counts = {name: (passing_cells(view), cell_mean(view), fail_closed(view)) for name, view in published.items()}
    assert counts == {
        "CLAUDE": (5, Fraction(5, 12), 2),
        "MERGE": (6, Fraction(1, 2), 1),
        "BASELINE": (2, Fraction(1, 6), 1),
    }


def test_at_least_r_is_fail_closed_and_at_least_one_counts_any_pass(published):
    for view in published.values():
        assert at_least(2)(view) == fail_closed(view)
    assert [at_least(1)(published[name]) for name in ("CLAUDE", "MERGE", "BASELINE")] == [3, 5, 1]


def test_pass_hat_runs_from_the_cell_mean_to_the_fail_closed_share(published):
    for view in published.values():
        assert pass_hat(1)(view) == pass_at(1)(view) == cell_mean(view)
        assert pass_hat(2)(view) == Fraction(fail_closed(view), 6)


def test_pass_at_and_pass_hat_count_the_subsets_of_repetitions():
    """The definition: draw k of the n repetitions; every subset is as likely."""
    for n, passed in itertools.product(range(1, 6), range(6)):
        if passed > n:
            continue
        view = instances((passed, n - passed, n))
        for k in range(1, n + 1):
            draws = list(itertools.combinations([True] * passed + [False] * (n - passed), k))
            assert pass_at(k)(view) == Fraction(sum(map(any, draws)), len(draws))
            assert pass_hat(k)(view) == Fraction(sum(map(all, draws)), len(draws))


def test_pass_hat_is_neither_the_power_of_the_mean_nor_the_mean_of_powers(published):
    assert pass_hat(2)(published["CLAUDE"]) not in (cell_mean(published["CLAUDE"]) ** 2, Fraction(3, 8))


@pytest.mark.parametrize("make", [at_least, pass_at, pass_hat])
@pytest.mark.parametrize("k", [0, -1, 3, True, 1.0, "1", None, np.int64(1), math.nan])
def test_a_k_outside_1_to_r_is_refused(published, make, k):
    with pytest.raises(RuleError, match="from 1 to the 2 repetitions"):
        make(k)(published["CLAUDE"])


def test_one_failed_sample_is_not_a_pass_at_two():
    with pytest.raises(RuleError):
        pass_at(2)(instances((0, 1, 1)))


EVERY = [passing_cells, cell_mean, fail_closed, at_least(1), pass_at(1), pass_hat(1)]


@pytest.mark.parametrize("reduction", EVERY, ids=name_of)
def test_a_missing_cell_refuses_every_number(reduction):
    with pytest.raises(CoverageError, match=r"3 of 4 cells of 'A' .short: i1."):
        reduction(instances((2, 0, 2), (1, 0, 2)))


@pytest.mark.parametrize("reduction", EVERY, ids=name_of)
def test_an_instance_that_plans_no_repetition_is_never_resolved(reduction):
    """``all([])`` is True."""
    with pytest.raises(CoverageError):
        reduction(instances((2, 0, 2), (0, 0, 0)))


@pytest.mark.parametrize("reduction", EVERY, ids=name_of)
def test_no_instance_at_all_is_refused_and_not_zero(reduction):
    with pytest.raises(CoverageError):
        reduction(Instances("A", (), *(np.zeros(0, np.int64),) * 3))


def test_a_mean_score_is_exact_and_needs_a_score_in_every_cell(grid):
    scores = {("A", 0, 0): "0.1", ("A", 0, 1): "0.2", ("B", 0, 0): "0.2", ("B", 0, 1): "0.1"}
    campaign = grid({"A": "TT", "B": "TT"}, columns={"score": lambda *cell: scores[cell]})
    assert mean_score(campaign.of("A")) == mean_score(campaign.of("B")) == Fraction(3, 20)
    campaign = grid({"A": "TT", "B": "TT"}, columns={"score": lambda c, i, r: "" if (c, r) == ("B", 1) else "1"})
    assert mean_score(campaign.of("A")) == 1
    with pytest.raises(CoverageError, match="1 of 2 cells of 'B' without a score"):
        mean_score(campaign.of("B"))


def test_a_mean_score_without_a_score_column_is_a_rule_that_the_data_cannot_serve(published):
    with pytest.raises(RuleError, match="no numeric column 'score'"):
        mean_score(published["CLAUDE"])


def test_the_smaller_total_ranks_higher_under_lowest(grid):
    campaign = grid({"A": "TF", "B": "TF"}, columns={"cost": lambda c, i, r: "0.30" if c == "A" else "0.10"})
    assert lowest("cost")(campaign.of("A")) == Fraction(-3, 5) < lowest("cost")(campaign.of("B")) == Fraction(-1, 5)
    assert unit_of(lowest("cost")) == "total cost"


def test_every_reduction_states_its_unit():
    units = {name_of(r): unit_of(r) for r in (*EVERY, mean_score, lowest("cost"), at_least(2), pass_hat(3))}
    assert units["passing_cells"] == units["cell_mean"] == "cells"
    assert units["fail_closed"] == units["at_least(2)"] == "instances"
    assert units["pass_hat(3)"] == "draws of 3 repetitions"
    with pytest.raises(RuleError, match="no unit on"):
        unit_of(lambda view: 1)


def test_a_readers_own_function_is_a_reduction(published):
    @unit("instances")
    def never_passed(view):
        return -int(np.count_nonzero(view.passed == 0))

    assert rank_key(published["MERGE"], [never_passed, cell_mean]) == (-1, Fraction(1, 2))


def test_a_value_is_shown_with_the_denominator_that_its_fraction_forgets(published):
    view = published["MERGE"]
    assert counted(cell_mean, view, cell_mean(view)) == "6 of 12 cells (0.500)"
    assert counted(fail_closed, view, 1) == "1 of 6 instances"
    assert counted(pass_hat(2), view, Fraction(1, 6)) == "0.167 draws of 2 repetitions"


@pytest.mark.parametrize(
    "name", ["passing_cells", "cell_mean", "fail_closed", "mean_score", "at_least(2)", "pass_at(10)", "pass_hat(4)", "lowest(cost)"]
)
def test_a_name_in_a_rule_file_is_the_built_in_reduction(name):
    assert name_of(named(name)) == name


@pytest.mark.parametrize(
    "name",
    ["", "mean", "fail_closed()", "fail_closed(2)", "at_least", "at_least()", "at_least(0)", "at_least(01)", "at_least(-1)", "at_least(1.0)", "at_least(٢)", "at_least(1)(1)",
     "lowest", "lowest()", "lowest(a\nb)", "cell_mean\n", " cell_mean", "CELL_MEAN", "__import__('os')", "unit", "a" * 5000, "pass_hat(99999)"],
    ids=lambda name: ascii(name)[:24],
)  # fmt: skip
def test_any_other_name_is_refused_and_none_runs_code(name):
    with pytest.raises(RuleError, match="found reduction"):
        named(name)


def test_a_total_beyond_64_bits_is_exact():
    """The sum of int64 would wrap here; the column keeps Python's integers where a sum could overflow."""
    big = np.array([[2**62, 2**62], [2**62, 1]], object)
    assert Column(big, 1, np.ones((2, 2), bool)).total() == 3 * 2**62 + 1
    assert Column(big, 3, np.array([[True, False], [False, True]])).total() == Fraction(2**62 + 1, 3)
    assert Column(big, 3, np.ones((2, 2), bool)).largest() == Fraction(2**62, 3)


@pytest.mark.parametrize("number", [2**61, 2**62, 2**63 - 1, 2**63, 2**64, 10**39])
def test_two_numbers_whose_sum_leaves_64_bits_add_up_exactly(grid, number):
    campaign = grid({"A": "TTT"}, columns={"cost": lambda c, i, r: number})
    assert lowest("cost")(campaign.of("A")) == -3 * number


def test_huge_and_tiny_numbers_of_a_file_add_up_exactly(grid):
    texts = ["9000000000000000000", "9000000000000000000", "1e-40", "-9000000000000000000"]
    campaign = grid({"A": "TTTT"}, columns={"cost": lambda c, i, r: texts[r]})
    assert lowest("cost")(campaign.of("A")) == -(9 * 10**18 + Fraction(1, 10**40))


@pytest.mark.parametrize(("reduction", "column"), [(lowest("cost"), "cost"), (mean_score, "score")])
def test_a_missing_cell_is_refused_even_where_its_number_was_measured(reduction, column):
    numbers = Column(np.array([[1, 2]]), 1, np.ones((1, 2), bool))
    with pytest.raises(CoverageError, match="1 of 2 cells"):
        reduction(instances((1, 0, 1), (0, 0, 1), columns={column: numbers}))


def test_a_column_that_is_not_there_is_refused_with_those_that_are():
    cost = Column(np.array([[1]]), 1, np.ones((1, 1), bool))
    with pytest.raises(RuleError, match="expected one of cost;"):
        lowest("price")(instances((1, 0, 1), columns={"cost": cost}))
    with pytest.raises(RuleError, match="expected a campaign with that column;"):
        lowest("price")(instances((1, 0, 1)))


def test_a_value_that_counts_no_whole_cells_is_told_as_a_decimal_and_a_whole_one_as_it_is():
    view = instances((1, 0, 1), (1, 0, 1), (1, 0, 1), (0, 1, 1))
    assert counted(cell_mean, view, Fraction(1, 3)) == "0.333 cells"
    assert counted(mean_score, view, Fraction(1, 2)) == "0.500 score points"
    assert counted(mean_score, view, 2) == "2 score points"


def test_instances_of_unequal_repetitions_weigh_the_same():
    view = instances((1, 0, 1), (1, 1, 2), (1, 2, 3))
    assert pass_hat(1)(view) == pass_at(1)(view) == Fraction(11, 18)


@pytest.mark.parametrize("stated", ["", 5, None])
def test_a_unit_that_is_no_word_is_refused(stated):
    with pytest.raises(RuleError, match="no unit"):
        unit_of(unit(stated)(lambda view: 1))
