"""What only mutation testing missed and no one module owns; the rest stands with the module. See ``tests/mutants/``."""

import dataclasses
import sys

import pytest

import evalkit.bounds
import evalkit.campaign
import evalkit.counterexample
import evalkit.decide
import evalkit.reweighting  # noqa: F401

MODULES = [sys.modules[f"evalkit.{name}"] for name in ("bounds", "campaign", "counterexample", "decide", "reweighting")]
RESULTS = {
    value
    for module in MODULES
    for value in vars(module).values()
    if dataclasses.is_dataclass(value) and value.__module__ == module.__name__
}


@pytest.mark.parametrize("kind", sorted(RESULTS, key=lambda kind: kind.__qualname__))
def test_nothing_that_was_read_or_decided_can_be_changed(kind):
    assert kind.__dataclass_params__.frozen
