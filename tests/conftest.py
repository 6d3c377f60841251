"""A campaign from letters, through the reader that everybody uses."""

from collections.abc import Callable
from typing import Any

import pytest

from evalkit import Campaign, ReleaseRule, cell_mean, fail_closed
from evalkit.sources import table

WORDS = {"T": "pass", "F": "fail", "t": "timeout", "e": "error", "u": "ungraded", "c": "cancelled"}


@pytest.fixture(scope="session")
def grid() -> Callable[..., Campaign]:
    """``grid({"A": "TT TF"})``: one word per instance, one letter per repetition; ``.`` is a cell that no row names.

    ``groups`` names a group per instance, ``columns`` holds ``{column: function(candidate, instance, repetition)}``.
    """

    def build(
        cells: dict[str, str],
        *,
        groups: str = "",
        columns: dict[str, Callable[[str, int, int], object]] | None = None,
        inventory: Any = None,
    ) -> Campaign:
        columns, labels = columns or {}, groups.split()
        header = ["candidate", "instance", "repetition", "outcome", *(["group"] if labels else []), *columns]
        lines = [",".join(header)]
        for candidate, words in cells.items():
            for i, word in enumerate(words.split()):
                for r, letter in enumerate(word):
                    if letter != ".":
                        more = [labels[i]] if labels else []
                        more += [str(number(candidate, i, r)) for number in columns.values()]
                        lines.append(",".join([candidate, f"i{i + 1}", str(r), WORDS[letter], *more]))
        return table.campaign("\n".join(lines).encode(), inventory=inventory)

    return build


@pytest.fixture(scope="session")
def rule() -> Callable[..., ReleaseRule]:
    """A fail-closed rule with the cell mean as tie-breaker, as far as nothing else is asked."""

    def build(reduction: Any = fail_closed, *, tie_breakers: tuple[Any, ...] = (cell_mean,), **more: Any) -> ReleaseRule:
        return ReleaseRule("test", "the tests", "a claim", reduction, tie_breakers, **more)

    return build
