"""Random campaigns, rules and tallies, plain data: made so that ties, gaps, equal limits and refusals come up often."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from . import plain
from .plain import MISSING_REASONS, Row, Rule

NAMES = ("A", "B", "C", "D")
COUNTING = ("passing_cells", "cell_mean", "fail_closed", "at_least", "pass_at", "pass_hat")


class Case(NamedTuple):
    rows: list[Row]
    inventory: dict[str, str | None] | None
    columns: tuple[str, ...]
    rule: Rule
    incumbent: str
    picker: tuple[tuple[Any, ...], ...]
    signed: tuple[str, ...]


def campaign(rng: random.Random) -> Case:
    candidates = NAMES[: rng.choices((1, 2, 3, 4), (2, 40, 43, 15))[0]]
    wide = rng.random() < 0.06  # instances enough for a margin to be met
    instances = [f"i{n}" for n in range(1, (rng.randint(6, 14) if wide else rng.randint(1, 4)) + 1)]
    repetitions = [str(n) for n in range(1 if wide else rng.randint(1, 3))]
    words = outcomes(rng, candidates, instances, repetitions, gaps=not wide)
    columns = tuple(name for name, share in (("cost", 0.4), ("score", 0.3)) if rng.random() < share)
    numbers = {column: measured(rng, column, list(words)) for column in columns}
    labels = {i: rng.choice(("safe", "other", "other")) for i in instances} if rng.random() < 0.5 else {}
    inventory = {i: labels.get(i) for i in instances} if rng.random() < 0.2 else None
    rows = [
        Row(*cell, word, labels.get(cell[1]), *(numbers.get(name, {}).get(cell) for name in ("cost", "score")))
        for cell, word in words.items()
        if word != "absent" or rng.random() < 0.1
    ]
    rng.shuffle(rows)
    if inventory is not None and rng.random() < 0.3:
        inventory["nobody ran it"] = "safe" if labels else None
    spoil(rng, rows, inventory)
    return Case(rows, inventory, columns, *asked(rng, rows, inventory, candidates, repetitions, columns, bool(labels), wide))


def outcomes(rng: random.Random, candidates, instances, repetitions, gaps: bool) -> dict[plain.Cell, str]:
    """Alike candidates tie; a permutation of the instances ties in every reduction but not cell by cell."""
    base = {(i, r): rng.choice(("pass", "fail")) for i in instances for r in repetitions}
    words = {}
    for c in candidates:
        kind = rng.choices(("random", "same", "moved", "near", "bad", "good"), (30, 12, 12, 26, 10, 10))[0]
        p = {"bad": rng.choice((0, 0.1)), "good": rng.choice((1, 0.9))}.get(kind, rng.random())
        order = rng.sample(instances, len(instances))
        for at, i in enumerate(instances):
            for r in repetitions:
                drawn = "pass" if rng.random() < p else "fail"
                words[c, i, r] = {"same": base[i, r], "moved": base[order[at], r], "near": base[i, r]}.get(kind, drawn)
        if kind == "near":
            odd = (c, rng.choice(instances), rng.choice(repetitions))
            words[odd] = "fail" if words[odd] == "pass" else "pass"
    if gaps:
        how = rng.choices(("none", "one", "few", "many", "row"), (40, 20, 20, 12, 8))[0]
        cells = list(words)
        if how == "row":
            c = rng.choice(candidates)
            cells = [cell for cell in cells if cell[0] == c]
        share = {"none": 0, "one": 0, "few": 0.08, "many": 0.3, "row": 0.8}[how]
        lost = [cell for cell in cells if rng.random() < share] or ([rng.choice(cells)] if how != "none" else [])
        for cell in lost:
            words[cell] = rng.choice(MISSING_REASONS)
    return words


def measured(rng: random.Random, column: str, cells: list[plain.Cell]) -> dict[plain.Cell, Fraction]:
    scale = Fraction(10) ** rng.choice((0, 0, 0, -1, -3, 20, -15) if column == "cost" else (-1, -2))
    most = rng.choice((1, 3, 1000)) if column == "cost" else 10
    share = rng.choices((1, 0.95, 0.5), (80, 15, 5))[0]
    return {cell: rng.randint(0, most) * scale for cell in cells if rng.random() < share}


def spoil(rng: random.Random, rows: list[Row], inventory: dict[str, str | None] | None) -> None:
    """One in twelve tables is to be refused: a double cell, an undeclared instance, a moved label, unlike repetitions."""
    if not rows or rng.random() > 1 / 12:
        return
    at = rng.randrange(len(rows))
    how = rng.choice(("double", "label", "repetition", "instance"))
    if how == "double":
        rows.insert(rng.randrange(len(rows) + 1), rows[at])
    elif how == "label" and rows[at].group:
        rows[at] = rows[at]._replace(group="moved")
    elif how == "repetition":
        renamed = rows[at].candidate
        rows[:] = [row._replace(repetition=f"s{row.repetition}") if row.candidate == renamed else row for row in rows]
    elif inventory is not None:
        inventory.pop(rows[at].instance, None)


def reduction(rng: random.Random, repetitions: int, columns: tuple[str, ...]) -> tuple[Any, ...]:
    name = rng.choices((*COUNTING, "lowest", "mean_score"), (8, 18, 30, 8, 8, 10, 5 * bool(columns) + 0.2, 5 * ("score" in columns) + 0.2))[
        0
    ]
    if name in ("at_least", "pass_at", "pass_hat"):
        return name, rng.choices((rng.randint(1, repetitions), repetitions + 1, 0), (95, 4, 1))[0]
    if name == "lowest":
        return name, rng.choice(columns) if columns and rng.random() < 0.97 else "latency"
    return (name,)


def asked(rng: random.Random, rows, inventory, candidates, repetitions, columns, labelled, wide):
    """Rule, incumbent, picker and signatures; floors and limits on the very number of some candidate, or next to it."""
    n = len(repetitions)
    key = tuple(reduction(rng, n, columns) for _ in range(rng.choices((1, 2, 3), (35, 50, 15))[0]))
    incumbent = rng.choices((rng.choice(candidates), "none", "nobody"), (88, 10, 2))[0]
    required = rng.choices((None, tuple(repetitions), (*repetitions, "9"), tuple(repetitions[1:]) or ("9",)), (78, 12, 8, 2))[0]
    as_fail = tuple(word for word in MISSING_REASONS if rng.random() < 0.4) if rng.random() < 0.3 else ()
    rule = Rule(key, rng.random() < 0.3, required, as_fail)
    try:
        grid = plain.counting(plain.required(plain.planned(rows, inventory, columns), rule), rule)
    except plain.Refused:
        grid = None
    some = rng.choice(candidates)
    step = rng.choice((0, 0, 0, Fraction(-1, 10**12), Fraction(1, 10**12), 1, -1))
    floor = None
    if rng.random() < (0.97 if incumbent == "none" else 0.25):
        try:
            floor = plain.value(grid, some, key[0]) + step if grid else Fraction(1)
        except (plain.Lacking, plain.Refused, KeyError):
            floor = Fraction(rng.randint(1, 3))
        if floor <= 0 and key[0][0] != "lowest" and rng.random() < 0.9:
            floor = Fraction(1, 2)
    limits = []
    for column in columns:
        if rng.random() < 0.35:
            statistic = rng.choice(("total", "mean", "maximum"))
            found = [grid.numbers[column][cell] for cell in plain.cells_of(grid, some) if cell in grid.numbers[column]] if grid else []
            found = found or [Fraction(5)]
            number = {"total": sum(found), "mean": sum(found) / len(found), "maximum": max(found)}[statistic]
            limits.append((column, statistic, number + step))
    if rng.random() < 0.01:
        limits.append(("latency", "total", Fraction(1)))
    blocking = tuple(g for g in ("safe", "other") if rng.random() < 0.25) if labelled else (("safe",) if rng.random() < 0.02 else ())
    roles = tuple(role for role in ("safety", "legal") if rng.random() < 0.12)
    margin = None
    if rng.random() < (0.6 if wide else 0.03):
        margin = rng.choice((Fraction(0), Fraction(1, 10), Fraction(1, 3)))
    alpha = rng.choice((Fraction(1, 20), Fraction(2, 5), Fraction(1, 100)))
    rule = rule._replace(floor=floor, blocking=blocking, limits=tuple(limits), sign_offs=roles, margin=margin, alpha=alpha)
    picker = (("cell_mean",),) if rng.random() < 0.5 else tuple(reduction(rng, n, columns) for _ in range(rng.randint(1, 2)))
    return rule, incumbent, picker, tuple(role for role in (*roles, "nobody asked") if rng.random() < 0.8)


# Tallies


class Mixes(NamedTuple):
    before: dict[str, tuple[int, ...]]
    after: dict[str, tuple[int, ...]]
    weights: dict[str, Fraction]


def tallies(rng: random.Random) -> Mixes:
    size = rng.choices(("small", "mixed", "huge"), (60, 25, 15))[0]
    many = (1, 2, 3, 4) if size != "huge" else (1, 2, 5, 12)
    groups = rng.sample(("routine", "complex", *(f"g{n}" for n in range(10))), rng.choices(many, (8, 52, 25, 15))[0])
    before = {g: counts(rng, size) for g in groups}
    sound = all(len(found) > 1 for found in before.values())
    how = rng.choices(("drawn", "scaled", "worse", "same"), (50, 15, 25, 10))[0]
    after = {g: counts(rng, size) for g in groups}
    if how == "same":
        after = dict(before)
    elif how == "scaled" and sound:  # equal rates, another mix
        after = {g: (before[g][0] * m, before[g][1] * m) for g in groups for m in [rng.choice((1, 2, 7))]}
    elif how == "worse" and sound:  # each group a little lower, under a mix of its own
        after = {}
        for g, (x, n, *_) in before.items():
            m = rng.choice((1, 1, 9))
            after[g] = (max(0, x * m - rng.choice((0, 1))), n * m)
    if rng.random() < 0.04:
        after.pop(rng.choice(groups))
    if rng.random() < 0.04:
        after["extra"] = (1, 2)
    return Mixes(before, after, weights(rng, before))


def counts(rng: random.Random, size: str) -> tuple[int, ...]:
    most = {"small": 12, "mixed": rng.choice((3, 1000)), "huge": 10**18 - 1 if rng.random() < 0.985 else 10**19}[size]
    n = rng.choices((rng.randint(1, most), most, 1, 0), (80, 10, 7, 3) if size != "huge" else (40, 55, 3, 2))[0]
    x = rng.choices((rng.randint(0, n), 0, n), (80, 10, 10))[0]
    kind = rng.random()
    if kind < 0.15:
        return x, n, n + rng.randint(0, 3)
    if kind < 0.16:
        return rng.choice(((x + n + 1, n), (x, n, n - 1), ()))  # malformed
    return x, n


def weights(rng: random.Random, before: Mapping[str, tuple[int, ...]]) -> dict[str, Fraction]:
    groups = list(before)
    how = rng.choices(("own", "drawn", "one", "equal", "sum", "negative", "lacking"), (25, 40, 10, 15, 4, 3, 3))[0]
    parts = [rng.randint(0, 9) for _ in groups]
    if how == "own":
        parts = [(before[g] or (0, 0))[1] if len(before[g]) > 1 else 0 for g in groups]
    elif how == "one":
        parts = [int(g == groups[0]) for g in groups]
    elif how == "equal" or not sum(parts):
        parts = [1] * len(groups)
    total = sum(parts) or 1
    made = {g: Fraction(part, total) for g, part in zip(groups, parts, strict=True)}
    if how == "sum":
        made[groups[0]] += Fraction(1, 10**12)
    elif how == "negative":
        made[groups[0]] -= 2
        made[groups[-1]] += 2
    elif how == "lacking":
        made["unheard"] = made.pop(groups[0])
    return made
