"""The smallest tables, against brute force over whole grids of cells."""

import itertools
import json
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from evalkit import (
    InputError,
    Instances,
    RuleError,
    at_least,
    cell_mean,
    fail_closed,
    lowest,
    mean_score,
    observed_rate,
    pass_at,
    pass_hat,
    rank_key,
    read_campaign,
    reverses,
    unit,
)
from evalkit.counterexample import Disagreement, NoDisagreement, _parts, smallest_disagreement, smallest_reversal

ORACLES = Path(__file__).resolve().parents[2] / "shared" / "oracles.json"


def oracle(name: str) -> dict:
    if not ORACLES.exists():
        pytest.skip("../shared/oracles.json is absent")
    return next(o for o in json.loads(ORACLES.read_text())["oracles"] if o["id"] == name)


def sums(found: object) -> tuple[list[int], list[int]]:
    assert isinstance(found, Disagreement), found
    return found.campaign.of("A").passed.tolist(), found.campaign.of("B").passed.tolist()


def view(grid: tuple[tuple[int, ...], ...]) -> Instances:
    passed, planned = np.array([sum(row) for row in grid], np.int64), np.array([len(row) for row in grid], np.int64)
    return Instances("A", tuple(f"i{k}" for k in range(len(grid))), passed, planned - passed, planned)


def brute_force(key_a: list, key_b: list, n: int, r: int) -> bool:
    """Whether any two grids of T and F, cell by cell, are ordered in opposite ways."""
    rows = list(itertools.product((0, 1), repeat=r))
    keys = {(rank_key(view(g), key_a), rank_key(view(g), key_b)) for g in itertools.product(rows, repeat=n)}
    return any(a1 > a2 and b1 < b2 for (a1, b1), (a2, b2) in itertools.product(keys, repeat=2))


def test_six_cells_are_the_smallest_table_on_which_fail_closed_and_mean_disagree() -> None:
    found = smallest_disagreement([fail_closed], [cell_mean])
    assert sums(found) == ([3, 0], [2, 2])
    assert str(found) == (
        "fail_closed chooses A and cell_mean chooses B on 6 cells per candidate (2 instances, 3 repetitions). "
        "A: TTT FFF. B: TTF TTF. None of the 105 smaller pairs of tables does this."
    )
    two = smallest_disagreement([fail_closed], [cell_mean], repetitions=2)
    assert sums(two) == ([2, 0, 0], [1, 1, 1])
    assert isinstance(two, Disagreement)
    assert two.campaign.codes.size // 2 == 6


def test_brute_force_over_every_grid_finds_nothing_smaller() -> None:
    for cells in range(1, 6):
        for n in (n for n in range(1, cells + 1) if cells % n == 0):
            assert not brute_force([fail_closed], [cell_mean], n, cells // n), (n, cells // n)
    assert brute_force([fail_closed], [cell_mean], 2, 3)
    assert brute_force([fail_closed], [cell_mean], 3, 2)


def test_the_smallest_tables_match_the_recorded_ones() -> None:
    expected = oracle("cex-01")["expected"]
    shapes = {(s["instances"], s["repetitions"]): s for s in expected["minimal_shapes"]}
    for repetitions in (2, 3):
        found = smallest_disagreement([fail_closed], [cell_mean], repetitions=repetitions)
        assert isinstance(found, Disagreement)
        r, _, n = found.campaign.codes.shape
        assert n * r == expected["min_cells_per_candidate"]
        recorded = shapes[n, r]
        assert sums(found) == tuple([sum(row) for row in recorded[name]] for name in "AB")


def test_pass_hat_and_pass_at_disagree_on_two_instances() -> None:
    for key_a, key_b in (([fail_closed], [at_least(1)]), ([pass_hat(2)], [pass_at(2)])):
        assert sums(smallest_disagreement(key_a, key_b, repetitions=2)) == ([2, 0], [1, 1])
    expected = oracle("cex-03")["expected"]
    a, b = sums(smallest_disagreement([fail_closed], [at_least(1)], repetitions=oracle("cex-03")["input"]["r"]))
    assert (sorted(a), sorted(b), len(a)) == (expected["A_row_sums"], expected["B_row_sums"], expected["instances"])


def test_swapping_the_keys_swaps_the_two_candidates_at_the_same_size() -> None:
    one, other = (smallest_disagreement(*keys) for keys in (([fail_closed], [cell_mean]), ([cell_mean], [fail_closed])))
    assert sums(one) == sums(other)[::-1]


def test_with_one_repetition_the_keys_never_disagree_and_it_says_how_far_it_searched() -> None:
    answer = smallest_disagreement([fail_closed], [cell_mean], repetitions=1, most_cells=8)
    assert isinstance(answer, NoDisagreement)
    assert str(answer) == (
        "fail_closed and cell_mean choose no different winners on any table of up to 8 cells per candidate; 120 pairs of tables were tried"
    )
    assert answer.ruled_out == sum((n + 1) * n // 2 for n in range(1, 9))


def test_pass_hat_of_one_is_the_mean_so_there_is_no_counterexample() -> None:
    assert isinstance(smallest_disagreement([pass_hat(1)], [cell_mean], most_cells=8), NoDisagreement)


def test_a_tie_is_no_disagreement_but_a_tie_breaker_can_make_one() -> None:
    assert isinstance(smallest_disagreement([at_least(1)], [at_least(1), cell_mean], most_cells=6), NoDisagreement)
    found = smallest_disagreement([at_least(1), cell_mean], [at_least(1), fail_closed])
    a, b = sums(found)
    assert sum(x > 0 for x in a) == sum(x > 0 for x in b)
    assert sum(a) > sum(b)


def test_a_readers_own_reduction_gets_a_counterexample() -> None:
    @unit("instances")
    def majority(instances: Instances) -> int:
        return int(np.count_nonzero(2 * instances.passed > instances.planned))

    found = smallest_disagreement([majority], [fail_closed])
    a, b = sums(found)
    assert isinstance(found, Disagreement)
    planned = found.campaign.codes.shape[0]
    assert sum(2 * x > planned for x in a) > sum(2 * x > planned for x in b)
    assert sum(x == planned for x in a) < sum(x == planned for x in b)
    n = len(a)
    for cells in range(1, n * planned):
        for m in (m for m in range(1, cells + 1) if cells % m == 0):
            assert not brute_force([majority], [fail_closed], m, cells // m)


def test_shapes_on_which_a_key_is_not_defined_are_no_tables() -> None:
    found = smallest_disagreement([at_least(2)], [cell_mean])
    a, b = sums(found)
    assert isinstance(found, Disagreement)
    assert found.campaign.codes.shape[0] >= 2
    assert sum(x >= 2 for x in a) > sum(x >= 2 for x in b)


@pytest.mark.parametrize("reduction", [mean_score, lowest("cost")])
def test_a_key_that_needs_measured_numbers_is_refused(reduction: object) -> None:
    with pytest.raises(RuleError, match="numeric column"):
        smallest_disagreement([reduction], [cell_mean])  # type: ignore[list-item]


def test_empty_keys_and_sizes_are_refused() -> None:
    with pytest.raises(InputError):
        smallest_disagreement([], [cell_mean])
    for most_cells, repetitions in ((0, None), (6, 0)):
        with pytest.raises(InputError):
            smallest_disagreement([fail_closed], [cell_mean], most_cells=most_cells, repetitions=repetitions)


def test_the_campaign_can_be_written_and_read_again_unchanged(tmp_path: Path) -> None:
    found = smallest_disagreement([fail_closed], [cell_mean])
    assert isinstance(found, Disagreement)
    (tmp_path / "disagreement.csv").write_text(found.csv)
    again = read_campaign(tmp_path / "disagreement.csv")
    assert again.digest == found.campaign.digest
    assert fail_closed(again.of("A")) > fail_closed(again.of("B"))
    assert cell_mean(again.of("A")) < cell_mean(again.of("B"))


OWN = """from evalkit import unit
import numpy as np

@unit("instances")
def majority(instances):
    return int(np.count_nonzero(2 * instances.passed > instances.planned))
"""


def test_the_written_pytest_passes_beside_its_fixture_and_fails_on_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rules.py").write_text(OWN)
    scope: dict = {"__name__": "__main__"}
    exec(OWN, scope)  # as in a notebook cell
    found = smallest_disagreement([scope["majority"]], [fail_closed, at_least(1)])
    assert isinstance(found, Disagreement)
    assert "from my_rules import majority  # save the function there, under this name" in found.pytest
    monkeypatch.syspath_prepend(tmp_path)
    written: dict = {"__file__": str(tmp_path / "test_disagreement.py")}
    exec(compile(found.pytest, "test_disagreement.py", "exec"), written)
    (tmp_path / "disagreement.csv").write_text(found.csv)
    written["test_the_two_keys_choose_different_winners"]()
    (tmp_path / "disagreement.csv").write_text(found.csv.replace("fail", "pass"))
    with pytest.raises(AssertionError):
        written["test_the_two_keys_choose_different_winners"]()


def test_a_key_of_built_in_reductions_needs_no_import_of_ones_own() -> None:
    found = smallest_disagreement([at_least(2), cell_mean], [cell_mean])
    assert isinstance(found, Disagreement)
    assert '[named("at_least(2)"), named("cell_mean")]' in found.pytest
    assert "my_rules" not in found.pytest
    scope: dict = {}
    exec(compile(found.pytest, "test_disagreement.py", "exec"), scope)


def test_the_published_pair_is_found_and_proven_within_a_second() -> None:
    start = time.perf_counter()
    smallest_disagreement([fail_closed], [cell_mean])
    assert time.perf_counter() - start < 1


def test_nine_requests_are_the_smallest_reversal() -> None:
    before, after = smallest_reversal()
    counts = sorted(zip(before.passed, before.assessed, after.passed, after.assessed, strict=True))
    assert counts == [(1, 1, 3, 4), (1, 3, 0, 1)]
    assert reverses(before, after)
    assert (observed_rate(before), observed_rate(after)) == (Fraction(1, 2), Fraction(3, 5))
    assert before.groups == ("complex", "routine")
    example = oracle("cex-02")["expected"]["example"]
    recorded = sorted(zip(example["A"]["x"], example["A"]["n"], example["B"]["x"], example["B"]["n"], strict=True))
    assert counts == recorded
    assert sum(before.requested) + sum(after.requested) == oracle("cex-02")["expected"]["min_total_cells"]


def reversals(total: int) -> int:
    found = 0
    for n0, n1, m0 in itertools.product(range(1, total), repeat=3):
        m1 = total - n0 - n1 - m0
        if m1 < 1:
            continue
        for x0, x1, y0, y1 in itertools.product(range(n0 + 1), range(n1 + 1), range(m0 + 1), range(m1 + 1)):
            better = Fraction(x0, n0) > Fraction(y0, m0) and Fraction(x1, n1) > Fraction(y1, m1)
            found += better and Fraction(x0 + x1, n0 + n1) < Fraction(y0 + y1, m0 + m1)
    return found


def test_brute_force_finds_no_reversal_of_eight_requests_and_four_of_nine() -> None:
    assert [reversals(total) for total in range(4, 9)] == [0] * 5
    assert reversals(9) == 4


@unit("instances")
def even(instances: Instances) -> int:
    return int((instances.passed % 2 == 0).sum())


@unit("cells")
def spread(instances: Instances) -> int:
    return int(instances.passed.max() - instances.passed.min())


@unit("cells")
def minus(instances: Instances) -> int:
    return -int(instances.passed.sum())


@unit("cells")
def worst(instances: Instances) -> int:
    return int(instances.passed.min())


@pytest.mark.parametrize("keys", list(itertools.permutations([fail_closed, cell_mean, at_least(1), even, spread, minus, worst], 2)))
def test_any_two_keys_disagree_first_where_brute_force_says_so(keys: tuple) -> None:
    key_a, key_b = ([key] for key in keys)
    shapes = [(n, cells // n) for cells in range(1, 5) for n in range(1, cells + 1) if cells % n == 0]
    expected = next(((n, r) for n, r in shapes if brute_force(key_a, key_b, n, r)), None)
    found = smallest_disagreement(key_a, key_b, most_cells=4)
    if expected is None:
        assert isinstance(found, NoDisagreement)
        return
    assert isinstance(found, Disagreement)
    assert found.campaign.codes.shape == (expected[1], 2, expected[0])
    a, b = (found.campaign.of(name) for name in "AB")
    assert rank_key(a, key_a) > rank_key(b, key_a)
    assert rank_key(a, key_b) < rank_key(b, key_b)


def test_one_cell_is_a_table_and_twelve_are_the_most_by_themselves() -> None:
    found = smallest_disagreement([fail_closed], [cell_mean], most_cells=1)
    assert isinstance(found, NoDisagreement)
    assert found.ruled_out == 1
    same = smallest_disagreement([cell_mean], [cell_mean])
    assert isinstance(same, NoDisagreement)
    assert same.most_cells == 12


def test_a_key_that_one_shape_does_not_have_is_sought_on_the_next() -> None:
    @unit("cells")
    def of_two(instances: Instances) -> int:
        if len(instances.ids) < 2:
            raise RuleError("one instance", "two", "take two")
        return -int(instances.passed.sum())

    found = smallest_disagreement([cell_mean], [of_two])
    assert isinstance(found, Disagreement)
    assert found.campaign.codes.shape == (1, 2, 2)


def test_every_part_is_positive_and_every_way_is_there() -> None:
    assert sorted(_parts(5, 4)) == [(1, 1, 1, 2), (1, 1, 2, 1), (1, 2, 1, 1), (2, 1, 1, 1)]
    assert list(_parts(3, 4)) == []


@pytest.mark.parametrize(("module", "line"), [("Rules", "from Rules import own\n"), ("rules", "from rules import own\n"),
                                              ("__main__", "from my_rules import own  # save the function there, under this name\n"),
                                              (None, "from my_rules import own  # save the function there, under this name\n")])  # fmt: skip
def test_the_test_imports_a_reduction_from_where_it_is_defined(module: str | None, line: str) -> None:
    @unit("cells")
    def own(instances: Instances) -> int:
        return -int(instances.passed.sum())

    own.__module__ = module  # type: ignore[assignment]
    found = smallest_disagreement([cell_mean], [own])
    assert isinstance(found, Disagreement)
    assert line in found.pytest


def test_the_smallest_reversal_is_this_one() -> None:
    before, after = smallest_reversal()
    assert (before.groups, before.passed, before.requested) == (("complex", "routine"), (1, 1), (3, 1))
    assert (after.groups, after.passed, after.requested) == (("complex", "routine"), (0, 3), (1, 4))


def test_among_tables_that_the_second_key_likes_as_much_the_first_keys_last_is_shown() -> None:
    found = smallest_disagreement([fail_closed, cell_mean], [at_least(1)], repetitions=3)
    assert isinstance(found, Disagreement)
    a, b = found.campaign.of("A"), found.campaign.of("B")
    assert (a.passed.tolist(), b.passed.tolist()) == ([3, 0], [1, 1])  # [2, 2] would do too, and lose by less
