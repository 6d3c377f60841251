"""The smallest table on which two keys choose different winners, and the smallest traffic-mix reversal, by exhaustion.

A reduction sees how many repetitions of each instance passed, so one candidate's table is a multiset of those counts. Tables are
searched in order of size; every smaller one is tried and ruled out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .bounds import additive
from .campaign import FAIL, PASS, Campaign, Instances
from .decide import RankKey, rank_key
from .errors import InputError, RuleError
from .reductions import Reduction, name_of
from .reweighting import Tally

__all__ = ["Disagreement", "NoDisagreement", "smallest_disagreement", "smallest_reversal"]


@dataclass(frozen=True)
class Disagreement:
    """The smallest campaign of two candidates, ``A`` and ``B``, that two keys order strictly in opposite ways.

    ``csv`` is the campaign as a file that ``read_campaign`` reads, ``pytest`` a test that keeps it: save them side by side as
    ``disagreement.csv`` and ``test_disagreement.py``.
    """

    campaign: Campaign
    key_a: tuple[str, ...]
    key_b: tuple[str, ...]
    csv: str
    pytest: str
    ruled_out: int

    def __str__(self) -> str:
        r, _, n = self.campaign.codes.shape
        grids = [
            f"{name}: " + " ".join("".join("T" if code == PASS else "F" for code in column) for column in self.campaign.codes[:, c].T)
            for c, name in enumerate(self.campaign.candidates)
        ]
        return (
            f"{', then '.join(self.key_a)} chooses A and {', then '.join(self.key_b)} chooses B on {n * r} cells per candidate "
            f"({n} instances, {r} repetitions). {'. '.join(grids)}. None of the {self.ruled_out} smaller pairs of tables does this."
        )


@dataclass(frozen=True)
class NoDisagreement:
    """No table up to so many cells per candidate does it, and how many pairs of tables were tried."""

    key_a: tuple[str, ...]
    key_b: tuple[str, ...]
    most_cells: int
    ruled_out: int

    def __str__(self) -> str:
        return (
            f"{', then '.join(self.key_a)} and {', then '.join(self.key_b)} choose no different winners on any table of up to "
            f"{self.most_cells} cells per candidate; {self.ruled_out} pairs of tables were tried"
        )


def smallest_disagreement(
    key_a: Sequence[Reduction],
    key_b: Sequence[Reduction],
    *,
    most_cells: int = 12,
    repetitions: int | None = None,
) -> Disagreement | NoDisagreement:
    """The smallest campaign on which ``key_a`` ranks A strictly above B and ``key_b`` ranks B strictly above A.

    Smallest in cells per candidate, then instances, then repetitions (or with the repetitions given). Works for a reader's own
    reductions of the counts of passes, whatever the order and the names of the instances.
    Raises: RuleError where a key is defined on none of the tables, such as one that needs a numeric column.

    >>> from evalkit import cell_mean, fail_closed
    >>> found = smallest_disagreement([fail_closed], [cell_mean], repetitions=2)
    >>> found.campaign.codes.shape
    (2, 2, 3)
    """
    if not key_a or not key_b:
        raise InputError("an empty key", "two keys of at least one reduction", "name the reductions")
    if most_cells < 1 or (repetitions is not None and repetitions < 1):
        raise InputError(f"most_cells {most_cells}, repetitions {repetitions}", "whole numbers from 1", "correct them")
    names = tuple(map(name_of, key_a)), tuple(map(name_of, key_b))
    ruled_out, undefined, defined = 0, RuleError("no table", "at least one", "allow more cells"), False
    for cells in range(1, most_cells + 1):
        for n in (n for n in range(1, cells + 1) if not cells % n and repetitions in (None, cells // n)):
            try:
                tables = [(rank_key(view, key_a), rank_key(view, key_b), view) for view in _tables(n, cells // n)]
            except RuleError as gap:  # at_least(3) on two repetitions: no such table
                undefined = gap
                continue
            defined = True
            pair = _opposed(tables)
            if pair:
                campaign, csv = _campaign(*pair)
                return Disagreement(campaign, *names, csv, _test(key_a, key_b), ruled_out)
            ruled_out += len(tables) * (len(tables) - 1) // 2
    if not defined:
        raise undefined
    return NoDisagreement(*names, most_cells, ruled_out)


def smallest_reversal() -> tuple[Tally, Tally]:
    """Two periods with the fewest requests in which both groups get strictly worse and the observed rate rises.

    Every table of two groups with fewer requests was tried.

    >>> before, after = smallest_reversal()
    >>> sum(before.requested) + sum(after.requested)
    9
    """
    total = 4
    while True:
        for sizes in _parts(total, 4):
            for passed in itertools.product(*(range(n + 1) for n in sizes)):
                (x0, x1, y0, y1), (n0, n1, m0, m1) = passed, sizes
                if x0 * m0 > y0 * n0 and x1 * m1 > y1 * n1 and (x0 + x1) * (m0 + m1) < (y0 + y1) * (n0 + n1):
                    before = Tally.of("before", {"routine": (x0, n0), "complex": (x1, n1)})  # the first rate is the higher: the easier group
                    return before, Tally.of("after", {"routine": (y0, m0), "complex": (y1, m1)})
        total += 1


def _tables(n: int, repetitions: int) -> Iterator[Instances]:
    """Every multiset of counts of passes, as one candidate's instances."""
    planned, ids = np.full(n, repetitions, np.int64), tuple(f"i{k}" for k in range(1, n + 1))
    for rows in itertools.combinations_with_replacement(range(repetitions, -1, -1), n):
        passed = np.array(rows, np.int64)
        yield Instances("", ids, passed, planned - passed, planned)


def _opposed(tables: list[tuple[RankKey, RankKey, Instances]]) -> tuple[Instances, Instances] | None:
    """The first pair with the first key strictly falling and the second strictly rising: A, then B."""
    best: tuple[RankKey, Instances] | None = None  # the highest second key among tables with a lower first key
    for _, level in itertools.groupby(sorted(tables, key=lambda t: t[0]), key=lambda t: t[0]):
        rows = list(level)
        for _, key_b, view in rows:
            if best is not None and key_b < best[0]:
                return view, best[1]
        top = max(rows, key=lambda t: t[1])
        if best is None or top[1] > best[0]:
            best = top[1], top[2]
    return None


def _campaign(a: Instances, b: Instances) -> tuple[Campaign, str]:
    repetitions = tuple(map(str, range(int(a.planned[0]))))
    codes = np.array(
        [[[PASS if r < passed else FAIL for passed in view.passed] for view in (a, b)] for r in range(len(repetitions))], np.uint8
    )
    rows = [
        f"{name},{instance},{r},{'pass' if codes[int(r), c, i] == PASS else 'fail'}"
        for c, name in enumerate("AB")
        for i, instance in enumerate(a.ids)
        for r in repetitions
    ]
    return Campaign(("A", "B"), a.ids, repetitions, codes, rows=len(rows)), "\n".join(["candidate,instance,repetition,outcome", *rows, ""])


def _test(key_a: Sequence[Reduction], key_b: Sequence[Reduction]) -> str:
    """A pytest file; a reader's own reduction is imported from where it is defined."""
    own = []

    def source(reduction: Reduction) -> str:
        name, module = name_of(reduction), (getattr(reduction, "__module__", None) or "__main__")
        if additive(reduction):
            return f'named("{name}")'
        name = re.sub(r"\W+", "_", name).strip("_")
        note = "  # save the function there, under this name" if module == "__main__" else ""
        own.append(f"from {'my_rules' if module == '__main__' else module} import {name}{note}\n")
        return name

    first, second = (f"[{', '.join(map(source, key))}]" for key in (key_a, key_b))
    imports = "from pathlib import Path\n\nfrom evalkit import rank_key, read_campaign\n"
    imports += "from evalkit.reductions import named\n" if "named(" in first + second else ""
    return f"""{imports}{"".join(dict.fromkeys(own))}

def test_the_two_keys_choose_different_winners():
    campaign = read_campaign(Path(__file__).with_name("disagreement.csv"))
    a, b = campaign.of("A"), campaign.of("B")
    first, second = {first}, {second}
    assert rank_key(a, first) > rank_key(b, first)
    assert rank_key(a, second) < rank_key(b, second)
"""


def _parts(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a total as so many positive numbers."""
    for bars in itertools.combinations(range(1, total), parts - 1):
        yield tuple(b - a for a, b in itertools.pairwise((0, *bars, total)))
