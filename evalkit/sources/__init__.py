"""Readers: a file or a frame in, a campaign or tallies out. The format is recognised by content, never by name alone."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from ..campaign import Campaign, Inventory
from ..errors import EvalkitError, InputError
from ..records import bundled
from ..reweighting import Tally
from . import table, tau_bench

__all__ = ["read_campaign", "read_inventory", "read_tallies"]

_MOST_BYTES = 4_000_000_000  # unpacked


def read_campaign(path: str | os.PathLike[str] = "", *, inventory: str | os.PathLike[str] = "", repetition: str = "repetition") -> Campaign:
    """A campaign from a canonical CSV or a tau-bench result file, plain or gzip; an empty path reads the bundled fixture.

    ``inventory`` names a CSV of the declared instances. ``repetition="order"`` numbers the rows of each candidate and
    instance in file order, where the file's ids do not match between candidates.

    >>> read_campaign().candidates
    ('BASELINE', 'CLAUDE', 'MERGE')
    """
    file = Path(path) if path else bundled("fixtures/claude_merge.csv")
    declared = read_inventory(inventory) if inventory else None
    try:
        data = _content(file)
        if data.lstrip()[:1] in (b"[", b"{"):
            return tau_bench.campaign(data, candidate=file.name.split(".")[0], inventory=declared)
        return table.campaign(data, inventory=declared, repetition=repetition)
    except EvalkitError as error:
        raise error.at(file) from None


def read_inventory(path: str | os.PathLike[str]) -> Inventory:
    """The declared instances from a CSV with the columns ``instance`` and optionally ``group``, ``cluster``."""
    try:
        return table.inventory(_content(Path(path)))
    except EvalkitError as error:
        raise error.at(path) from None


def read_tallies(path: str | os.PathLike[str] = "") -> dict[str, Tally]:
    """Tallies by period from a canonical CSV; an empty path reads the bundled fixture.

    >>> list(read_tallies())
    ['baseline', 'candidate']
    """
    file = Path(path) if path else bundled("fixtures/traffic_mix.csv")
    try:
        return table.tallies(_content(file))
    except EvalkitError as error:
        raise error.at(file) from None


def _content(path: Path) -> bytes:
    """The bytes of a file, gzip unpacked up to a limit."""
    try:
        with path.open("rb") as handle:
            if handle.read(2) != b"\x1f\x8b":
                handle.seek(0)
                return handle.read()
        with gzip.open(path) as packed:
            data = packed.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"no readable file ({reason})", "a campaign or tally file", "check the path") from None
    if len(data) > _MOST_BYTES:
        raise InputError("a gzip file that unpacks to gigabytes", "a result file", "check that this is the right file")
    return data
