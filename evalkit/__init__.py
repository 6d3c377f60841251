"""evalkit: name what you count before you rank.

Reductions and rank keys for agent-evaluation campaigns, and pass rates under a declared mix, exact.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .campaign import Campaign, Coverage, Instances
from .decide import Decision, Limit, ReleaseRule, decide, rank, rank_key, review
from .errors import CoverageError, EvalkitError, InputError, MixError, RankKeyError, RecordError, RuleError
from .reductions import at_least, cell_mean, fail_closed, lowest, mean_score, pass_at, pass_hat, passing_cells, unit
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

if TYPE_CHECKING:
    from .records import read_reference, read_rule
    from .sources import read_campaign, read_tallies

__version__ = "0.1.0"

__all__ = [
    "Campaign", "Coverage", "CoverageError", "Decision", "EvalkitError", "InputError", "Instances", "Limit", "MixError", "RankKeyError",
    "RecordError", "Reference", "ReleaseRule", "RuleError", "Tally", "at_least", "cell_mean", "compare", "decide", "decompose", "dominates",
    "equal_weights", "fail_closed", "flip_mix", "group_rates", "lowest", "mean_score", "observed_mix", "observed_rate", "pass_at",
    "pass_hat", "passing_cells", "rank", "rank_key", "read_campaign", "read_reference", "read_rule", "read_tallies", "reverses", "review",
    "standardise", "unit",
]  # fmt: skip

_WHEN_CALLED = {"read_reference": "records", "read_rule": "records", "read_campaign": "sources", "read_tallies": "sources"}


def __getattr__(name: str) -> object:
    """The readers, imported when first used: they bring JSON, archives and tables with them."""
    if name not in _WHEN_CALLED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHEN_CALLED[name]}"), name)
