"""An independent model in plain Python says the same as the kit: 10^5 campaigns and tallies in ``make test-long``, a few hundred here.

``tests/model/plain.py`` is the model, ``draw.py`` makes the inputs, ``agree.py`` compares. What the inputs reached is counted,
since two programs that refuse everything agree too.
"""

from __future__ import annotations

import ast
import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from model import agree

from evalkit import CoverageError, Instances, MixError, ReleaseRule, Tally, decide, mean_score, reverses, unit
from evalkit.bounds import Unavailable, decide_by_bounds, decided
from evalkit.decide import PROMOTE, UNDECIDED

LONG = "EVALKIT_LONG" in os.environ
CAMPAIGNS, TALLIES, EVERY = (100_000, 100_000, 5) if LONG else (300, 300, 2)
STATES = ("met", "not met", "not evaluated")
CONDITIONS = ("above", "floor", "group", "limit", "margin")
REASONS = ("absent", "error", "timeout", "cancelled", "ungraded")

REACHED_BY_CAMPAIGNS = {
    *(f"verdict: {word}" for word in ("promote", "keep the incumbent", "undecided")),
    *(f"verdict by bounds: {word}" for word in ("promote", "keep the incumbent", "undecided")),
    *(f"{condition}: {state}" for condition in CONDITIONS for state in STATES if (condition, state) != ("margin", "met")),
    *(f"{condition}: {state}" for condition in ("incumbent", "challenger", "one", "signed") for state in ("met", "not evaluated")),
    *(f"withheld by {condition} alone" for condition in ("above", "floor", "group", "limit", "one", "signed")),
    *(f"missing: {reason}" for reason in REASONS),
    *(f"bounds: {word}" for word in ("decided, promote", "decided, keep", "open")),
    *(f"rerun: {word}" for word in ("no, not", "yes, not", "yes, pivotal")),
    *(f"reduction {name}" for name in agree.NAMED),
    *(f"reduction {name} refused: CoverageError" for name in agree.NAMED),
    *(f"reduction {name} refused: RuleError" for name in ("at_least", "pass_at", "pass_hat", "mean_score", "lowest")),
    "bounds unavailable", "table refused: InputError", "gate refused: InputError", "gate refused: RuleError", "no incumbent",
    "one candidate alone", "an instance that nobody ran", "counted as fail", "a tie for first", "mean and rule disagree",
    "a limit met with equality", "a floor met with equality", "read from a table's bytes", "passed: not met",
}  # fmt: skip
REACHED_IN_THE_LONG_RUN = {
    "margin: met", "withheld by margin alone", "withheld by passed alone", "above: met", "bounds refused: RuleError",
    "withheld by incumbent alone", "withheld by challenger alone",
}  # fmt: skip
REACHED_BY_TALLIES = {
    *(f"{what}: {word}" for what in ("dominance", "reversal", "flip mix") for word in ("none", "yes")),
    *(f"{what} refused: {kind}" for what in ("dominance", "reversal", "flip mix", "decomposition") for kind in ("CoverageError", "MixError")),
    *(f"{what}: {word}" for what in ("observed bounds", "standardised bounds") for word in ("a range", "one value")),
    *(f"sign of the change: {sign}" for sign in (-1, 0, 1, None)),
    "tally refused: InputError", "tally refused: MixError", "rates refused: MixError", "standardised refused: MixError",
    "standardised refused: CoverageError", "comparison compared", "comparison unavailable", "a sum beyond 2^62", "an assessed group of none",
    "observed and standardised move apart", "rate and mix effects of opposite sign",
}  # fmt: skip


def unreached(reached: Counter[str], wanted: set[str]) -> list[str]:
    return sorted(name for name in wanted if not reached[name])


def test_the_model_and_the_kit_agree_on_every_campaign(record_property) -> None:
    reached: Counter[str] = Counter()
    for seed in range(CAMPAIGNS):
        try:
            agree.agree_on_campaign(seed, reached, EVERY)
        except AssertionError as difference:
            raise AssertionError(f"campaign of seed {seed}: {difference}") from difference
    for name, times in sorted(reached.items()):
        record_property(name, times)
    if LONG:
        print(f"{CAMPAIGNS} campaigns:", dict(sorted(reached.items())), file=sys.__stdout__)
    assert unreached(reached, REACHED_BY_CAMPAIGNS | (REACHED_IN_THE_LONG_RUN if LONG else set())) == []


def test_the_model_and_the_kit_agree_on_every_tally(record_property) -> None:
    reached: Counter[str] = Counter()
    for seed in range(TALLIES):
        try:
            agree.agree_on_tallies(seed, reached)
        except AssertionError as difference:
            raise AssertionError(f"tallies of seed {seed}: {difference}") from difference
    for name, times in sorted(reached.items()):
        record_property(name, times)
    if LONG:
        print(f"{TALLIES} pairs of tallies:", dict(sorted(reached.items())), file=sys.__stdout__)
    assert unreached(reached, REACHED_BY_TALLIES) == []


def test_the_model_knows_nothing_of_the_kit_and_nothing_of_numpy() -> None:
    for name in ("plain.py", "draw.py"):
        tree = ast.parse((Path(__file__).parent / "model" / name).read_text(encoding="utf-8"))
        imported = {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert {part.split(".")[0] for part in imported} <= {*sys.stdlib_module_names, "", "plain"}


def test_a_difference_between_model_and_kit_is_seen(monkeypatch) -> None:
    """The comparison itself can fail: a kit whose fail-closed count forgives one repetition is found at once."""

    @unit("instances")
    def forgiving(instances: Instances) -> int:
        return int(np.count_nonzero(instances.passed + 1 >= instances.planned))

    forgiving.__name__ = "fail_closed"
    monkeypatch.setitem(agree.NAMED, "fail_closed", forgiving)
    with pytest.raises(AssertionError, match=r"fail_closed|keys|the kit says"):
        for seed in range(100):
            agree.agree_on_campaign(seed, Counter())


# What the model found


@unit("instances")
def exactly_one(instances: Instances) -> int:
    """One more pass can lower it, so two fillings of the missing cells do not bound it."""
    return int(np.count_nonzero(instances.passed == 1))


def test_a_decided_rule_does_not_promote_by_two_fillings_that_prove_nothing(grid) -> None:
    campaign = grid({"A": "TF FF", "B": "Tu Tu"})  # B would have 2 where both fail, 0 where both pass
    rule = ReleaseRule("r", "o", "p", exactly_one, coverage="decided")
    assert isinstance(decided(campaign, rule, incumbent="B"), Unavailable)
    assert decide_by_bounds(campaign, rule, incumbent="B").verdict == UNDECIDED


def test_a_decided_rule_does_not_promote_past_a_candidate_whose_number_is_not_measured(grid) -> None:
    score = {"score": lambda c, i, r: "" if (c, i) == ("C", 1) else {"A": "0.5", "B": "0.1", "C": "0.9"}[c]}
    campaign = grid({"A": "TT TT", "B": "TT TT", "C": "TT Tu"}, columns=score)
    rule = ReleaseRule("r", "o", "p", mean_score, coverage="decided")
    decision = decide_by_bounds(campaign, rule, incumbent="B")
    assert decision.verdict == UNDECIDED
    assert decision.conditions[-1].numbers.startswith("C 3 of 4 cells (1 ungraded); unavailable: ")
    assert decide(campaign, replace(rule, coverage="complete"), incumbent="B").verdict == PROMOTE  # incomplete bystanders do not stop it


def test_a_reversal_of_unlike_groups_is_refused_whatever_the_observed_rates() -> None:
    before = Tally.of("before", {"a": (1, 2)})
    for other in ({"b": (1, 2)}, {"b": (2, 2)}):
        with pytest.raises(MixError):
            reverses(before, Tally.of("after", other))
    with pytest.raises(CoverageError):
        reverses(before, Tally.of("after", {"a": (1, 2, 3)}))
