"""evalkit: name what you count before you rank.

Reductions and rank keys for agent-evaluation campaigns, and pass rates under a declared mix, exact.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .campaign import Campaign, Coverage, Instances
from .decide import Decision, Limit, ReleaseRule, decide, rank, rank_key, review
from .errors import CoverageError, EvalkitError, InputError, MixError, RankKeyError, RecordError, RuleError
from .reductions import at_least, cell_mean, fail_closed, lowest, mean_score, pass_at, pass_hat, passing_cells, unit

if TYPE_CHECKING:
    from .records import read_reference, read_rule
    from .reweighting import (
        Reference,
        Tally,
        compare,
        decompose,
        dominates,
        equal_weights,
        flip_mix,
        group_rates,
        observed_mix,
        observed_rate,
        reverses,
        standardise,
    )  # fmt: skip
    from .sources import read_campaign, read_tallies

__version__ = "0.1.0"

__all__ = [
    "Campaign", "Coverage", "CoverageError", "Decision", "EvalkitError", "InputError", "Instances", "Limit", "MixError", "RankKeyError",
    "RecordError", "Reference", "ReleaseRule", "RuleError", "Tally", "at_least", "cell_mean", "compare", "decide", "decompose", "dominates",
    "equal_weights", "fail_closed", "flip_mix", "group_rates", "lowest", "mean_score", "observed_mix", "observed_rate", "pass_at",
    "pass_hat", "passing_cells", "rank", "rank_key", "read_campaign", "read_reference", "read_rule", "read_tallies", "reverses", "review",
    "standardise", "unit",
]  # fmt: skip

_WHEN_CALLED = {
    "records": ("read_reference", "read_rule"),
    "reweighting": (
        "Reference", "Tally", "compare", "decompose", "dominates", "equal_weights", "flip_mix", "group_rates", "observed_mix",
        "observed_rate", "reverses", "standardise",
    ),
    "sources": ("read_campaign", "read_tallies"),
}  # fmt: skip


def __getattr__(name: str) -> object:
    """The readers and the mix, imported when first used: JSON, archives, tables, and classes that a campaign does not need."""
    for module, names in _WHEN_CALLED.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
