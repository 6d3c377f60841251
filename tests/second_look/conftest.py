"""Each statistic against two other implementations. ``make test-second-look`` runs this folder; the default tests leave it out."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """These files are collected only where the folder is named."""
    return None if any("second_look" in str(argument) for argument in config.args) else True


@pytest.fixture(scope="session")
def ledger() -> Iterator[dict[tuple[str, str], list[float]]]:
    """(statistic, other implementation): points compared and the largest difference, printed at the end."""
    found: dict[tuple[str, str], list[float]] = {}
    yield found
    print(file=sys.__stdout__)
    for (statistic, other), (points, largest) in sorted(found.items()):
        print(f"{statistic:22} {other:46} {points:7.0f} points, largest difference {largest:.1e}", file=sys.__stdout__)


@pytest.fixture
def close(ledger: dict[tuple[str, str], list[float]]) -> Callable[..., None]:
    """``close(statistic, other, ours, theirs, at)``: equal numbers to ``within``, written into the ledger."""

    def compare(statistic: str, other: str, ours: Any, theirs: Any, at: object, within: float = 1e-9) -> None:
        pairs = list(zip(ours, theirs, strict=True)) if isinstance(ours, tuple | list) else [(ours, theirs)]
        for one, two in pairs:
            difference = abs(one - two)
            assert not math.isnan(difference), f"{statistic} at {at}: {ours} against {theirs} of {other}"
            assert difference <= within, f"{statistic} at {at}: {ours} against {theirs} of {other}"
            row = ledger.setdefault((statistic, other), [0, 0.0])
            row[1] = max(row[1], float(difference))
        row[0] += 1

    return compare
