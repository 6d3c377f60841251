"""Rules, references and decisions as files: strict JSON in, canonical JSON out, digests, atomic writes.

No file ever runs code: a rule names built-in reductions only. Every key that is not understood is refused, since a
misspelt condition would be a condition that nobody applies.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

from ._exact import as_text, rational
from .campaign import Campaign
from .decide import Decision, Limit, ReleaseRule
from .errors import EvalkitError, RecordError, listing, plain, quote
from .reductions import name_of, named
from .reweighting import MISSING_GROUP_POLICY, Comparison, Reference, Tally

__all__ = [
    "bundled", "canonical", "csv_text", "decision_record", "digest_of", "mix_record", "opened", "read_reference", "read_rule", "reference_text", "rule_as_json",
    "tallies_digest", "write_whole",
]  # fmt: skip

EVERY_PLANNED = "every_planned"
_LARGEST_RECORD = 1_000_000  # bytes
_MISSING: Any = object()


def bundled(name: str) -> Path:
    """A fixture or a notebook that comes with the kit, from a checkout or from the installed package."""
    here = Path(__file__).resolve().parent
    for root in (here / "_data", here.parent):
        if (root / name).exists():
            return root / name
    raise RecordError(f"no bundled file {quote(name)}", "a file that comes with the kit", "reinstall evalkit")


def opened(path: Path) -> io.BufferedReader:
    """A file to read, or a link to one; a pipe or a device, which may wait or run for ever, raises OSError as a folder does."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "a pipe or a device")
    return path.open("rb")


def _strict_json(path: Path) -> dict[str, Any]:
    """One JSON object: no duplicate key, no float, no NaN, no endless number, nothing deep."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if key in found:
                raise RecordError(f"key {quote(key)} twice", "each key once", "remove one of them")
            found[key] = value
        return found

    def no_float(text: str) -> Any:
        raise RecordError(f"the number {quote(text)}", 'exact numbers as text, such as "1/10" or "0.1"', "put it in quotes")

    def no_number(text: str) -> Any:
        raise RecordError(f"the number {quote(text)}", "a finite number of at most 18 digits", "correct it")

    def whole(text: str) -> int:
        return int(text) if len(text) <= 18 else no_number(text)

    try:
        with opened(path) as handle:
            raw = handle.read(_LARGEST_RECORD + 1)
    except (OSError, ValueError) as error:
        raise RecordError(f"no readable file ({getattr(error, 'strerror', None) or error})", "a JSON record", "check the path") from None
    if not raw.strip():
        raise RecordError("an empty file", "one JSON object", "check the path")
    if len(raw) > _LARGEST_RECORD:
        raise RecordError("more than a megabyte", "a small JSON record", "check that this is the right file")
    try:
        value = json.loads(
            raw.decode("utf-8-sig"), object_pairs_hook=pairs, parse_float=no_float, parse_constant=no_number, parse_int=whole
        )
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RecordError("half a character (a lone surrogate escape)", "whole characters", "write the character itself") from None
    except UnicodeDecodeError as error:
        raise RecordError(f"a byte that is not UTF-8 at offset {error.start}", "UTF-8 text", "save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise RecordError(
            f"JSON that breaks at line {error.lineno}, column {error.colno} ({error.msg})", "one JSON object", "correct it"
        ) from None
    except RecursionError:
        raise RecordError("JSON nested beyond any record", "one flat JSON object", "check that this is the right file") from None
    if not isinstance(value, dict):
        raise RecordError(f"a JSON {type(value).__name__}", "one JSON object", "correct the file")
    return value


def _rational(value: object, of: str) -> Fraction:
    """An exact number, its refusal placed."""
    try:
        return rational(value)
    except EvalkitError as error:
        raise RecordError(f"{error.found} for {of}", error.expected, error.todo) from None


def _shown(value: object) -> str:
    """A value as the file has it: null, true, a list."""
    return quote(value) if isinstance(value, str) else plain(json.dumps(value, ensure_ascii=False))


class _Fields:
    """The keys of a record, each taken once with its type; what is left over is refused."""

    def __init__(self, record: dict[str, Any], what: str) -> None:
        self.left, self.what = dict(record), what

    def take(self, key: str, kind: type, default: Any = _MISSING) -> Any:
        """The value of ``key``, of exactly this type."""
        if key not in self.left:
            if default is _MISSING:
                raise RecordError(f"no key {quote(key)}", f"{self.what} with that key", "add it")
            return default
        value: Any = self.left.pop(key)
        if type(value) is not kind:
            words = {str: "text", bool: "true or false", list: "a list", dict: "an object"}
            raise RecordError(f"{_shown(value)} for key {quote(key)}", words[kind], "correct it")
        if kind is str and not str(value).strip():
            raise RecordError(f"blank text for key {quote(key)}", "text", "write it, or leave the key out where it is optional")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of different texts, empty where the key is absent."""
        values = self.take(key, list, [])
        if any(type(v) is not str or not v.strip() for v in values) or len(set(values)) != len(values):
            raise RecordError(f"{_shown(values)} for key {quote(key)}", "a list of different texts", "correct it")
        return tuple(values)

    def number(self, key: str, default: Any = _MISSING) -> Fraction | None:
        """An exact number: a whole number, or rational text."""
        if key not in self.left and default is not _MISSING:
            return None
        if key not in self.left:
            raise RecordError(f"no key {quote(key)}", f"{self.what} with that key", "add it")
        return _rational(self.left.pop(key), f"key {quote(key)}")

    def done(self, known: str) -> None:
        """Refuse what was not understood."""
        if self.left:
            raise RecordError(
                f"unknown key {listing(list(self.left))}", f"{self.what} with the keys {known}", "correct the spelling, or remove it"
            )


_RULE_KEYS = (
    "rule_id, owner, purpose, reduction, and optionally tie_breakers, tie_breakers_may_promote, required_repetitions, coverage, "
    "count_as_fail, floor, blocking_groups, limits, sign_offs, margin, alpha, unit_reason"
)


def read_rule(path: str | os.PathLike[str] = "") -> ReleaseRule:
    """A release rule from a JSON file; an empty path reads the bundled fail-closed default.

    Raises: RecordError where the file is not such a record, RuleError where it asks for what no rule can.

    >>> read_rule().rule_id, [r.__name__ for r in read_rule().key]
    ('fail_closed_v1', ['fail_closed', 'cell_mean'])
    """
    file = Path(path) if path else bundled("fixtures/fail_closed_rule.json")
    try:
        fields = _Fields(_strict_json(file), "a release rule")
        repetitions = fields.left.pop("required_repetitions", EVERY_PLANNED)
        if repetitions != EVERY_PLANNED:
            fields.left["required_repetitions"] = repetitions
            repetitions = fields.texts("required_repetitions")
        alpha = fields.number("alpha", None)  # zero is refused, not the default
        limits = []
        for entry in fields.take("limits", list, []):
            if type(entry) is not dict:
                raise RecordError(f"{_shown(entry)} in limits", "an object with column, statistic, at_most", "correct it")
            limit = _Fields(entry, "a limit")
            limits.append(Limit(limit.take("column", str), limit.take("statistic", str), limit.number("at_most") or Fraction(0)))
            limit.done("column, statistic, at_most")
        rule = ReleaseRule(
            rule_id=fields.take("rule_id", str),
            owner=fields.take("owner", str),
            purpose=fields.take("purpose", str),
            reduction=named(fields.take("reduction", str)),
            tie_breakers=tuple(map(named, fields.texts("tie_breakers"))),
            tie_breakers_may_promote=fields.take("tie_breakers_may_promote", bool, False),
            required_repetitions=None if repetitions == EVERY_PLANNED else repetitions,
            count_as_fail=fields.texts("count_as_fail"),
            floor=fields.number("floor", None),
            blocking_groups=fields.texts("blocking_groups"),
            limits=tuple(limits),
            sign_offs=fields.texts("sign_offs"),
            coverage=fields.take("coverage", str, "complete"),
            margin=fields.number("margin", None),
            alpha=Fraction(1, 20) if alpha is None else alpha,
            unit_reason=fields.take("unit_reason", str, ""),
        )
        fields.done(_RULE_KEYS)
    except EvalkitError as error:
        raise error.at(file) from None
    return rule


def rule_as_json(rule: ReleaseRule) -> dict[str, Any]:
    """A rule with every default spelled out, as its digest sees it."""
    return {
        "rule_id": rule.rule_id,
        "owner": rule.owner,
        "purpose": rule.purpose,
        "reduction": name_of(rule.reduction),
        "tie_breakers": [name_of(r) for r in rule.tie_breakers],
        "tie_breakers_may_promote": rule.tie_breakers_may_promote,
        "required_repetitions": EVERY_PLANNED if rule.required_repetitions is None else list(rule.required_repetitions),
        "coverage": rule.coverage,
        "margin": None if rule.margin is None else as_text(rule.margin),
        "alpha": as_text(rule.alpha),
        "count_as_fail": sorted(rule.count_as_fail),
        "floor": None if rule.floor is None else as_text(rule.floor),
        "blocking_groups": sorted(rule.blocking_groups),
        "limits": [{"column": c.column, "statistic": c.statistic, "at_most": as_text(c.at_most)} for c in rule.limits],
        "sign_offs": sorted(rule.sign_offs),
        "unit_reason": rule.unit_reason,
    }


def read_reference(path: str | os.PathLike[str] = "") -> Reference:
    """A reference distribution from a JSON file; an empty path reads the bundled article's record.

    Raises: RecordError where the file is not such a record, MixError where its weights are not a distribution.

    >>> read_reference().weights["complex"]
    Fraction(9, 10)
    """
    file = Path(path) if path else bundled("fixtures/support_mix_fixture_v1.json")
    try:
        fields = _Fields(_strict_json(file), "a reference")
        weights = fields.take("weights", dict)
        for group, weight in weights.items():
            if type(weight) is not str:
                raise RecordError(f"weight {_shown(weight)} of group {quote(group)}", 'text such as "1/10"', "put it in quotes")
        reference = Reference(
            reference_id=fields.take("reference_id", str),
            grouping_rule=fields.take("grouping_rule", str),
            weights=MappingProxyType({group: _rational(weight, f"group {quote(group)}") for group, weight in weights.items()}),
            missing_group_policy=fields.take("missing_group_policy", str),
            grader_version=fields.take("grader_version", str),
            purpose=fields.take("purpose", str, ""),
        )
        fields.done("reference_id, grouping_rule, weights, missing_group_policy, grader_version, and optionally purpose")
    except EvalkitError as error:
        raise error.at(file) from None
    return reference


def _reference_as_json(reference: Reference) -> dict[str, Any]:
    record = {
        "reference_id": reference.reference_id,
        "grouping_rule": reference.grouping_rule,
        "weights": {group: as_text(weight) for group, weight in reference.weights.items()},
        "missing_group_policy": MISSING_GROUP_POLICY,
        "grader_version": reference.grader_version,
    }
    return {**record, "purpose": reference.purpose} if reference.purpose else record


def reference_text(reference: Reference) -> str:
    """A reference as the JSON file that ``read_reference`` reads."""
    return json.dumps(_reference_as_json(reference), indent=2, ensure_ascii=False) + "\n"


def canonical(record: Mapping[str, Any]) -> str:
    """The one text of a record: sorted keys, ASCII, no float can be in it."""
    return json.dumps(record, indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"


def digest_of(record: ReleaseRule | Reference) -> str:
    """SHA-256 of a rule's or a reference's canonical text."""
    content = rule_as_json(record) if isinstance(record, ReleaseRule) else _reference_as_json(record)
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def tallies_digest(tallies: Mapping[str, Tally]) -> str:
    """SHA-256 of the canonical content of all periods."""
    content = {
        t.period: {
            "bindings": dict(t.bindings),
            "groups": {g: counts for g, *counts in zip(t.groups, t.passed, t.assessed, t.requested, strict=True)},
        }
        for t in tallies.values()
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def decision_record(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> dict[str, Any]:
    """What was decided, from what: the same content gives the same bytes on any machine, row order or engine."""
    return {
        "format": "evalkit decision 1",
        "kind": "release",
        "campaign": {
            "digest": campaign.digest,
            "candidates": len(campaign.candidates),
            "instances": len(campaign.instances),
            "repetitions": len(campaign.repetitions),
            "inventory_declared": campaign.declared,
            "bindings": dict(campaign.bindings),
        },
        "rule": {"rule_id": rule.rule_id, "owner": rule.owner, "digest": digest_of(rule)},
        "incumbent": decision.incumbent,
        "sign_offs": dict(decision.sign_offs),
        "labels": {
            "highest_mean": sorted(decision.highest_mean),
            "winner": sorted(decision.winner),
            "verdict": decision.verdict,
        },
        "picker": {"key": decision.review.rows[0][1], "picked": sorted(decision.picked), "same_unit_as_rule": decision.review.agree},
        "challenger": sorted(decision.challenger),
        "candidates": {
            s.candidate: {
                "place": s.place,
                "key": None if s.key is None else [as_text(element) for element in s.key],
                "mean": None if s.mean is None else as_text(s.mean),
                "passed": s.passed,
                "failed": s.failed,
                "planned": s.coverage.planned,
                "observed": s.coverage.observed - sum(s.coverage.counted_as_fail.values()),
                "missing": dict(s.coverage.missing),
                "counted_as_fail": dict(s.coverage.counted_as_fail),
            }
            for s in decision.standings
        },
        "conditions": [{"condition": c.name, "state": c.state, "numbers": c.numbers} for c in decision.conditions],
        "reasons": list(decision.reasons),
    }


def mix_record(tallies: Mapping[str, Tally], reference: Reference, comparison: Comparison) -> dict[str, Any]:
    """What was compared, from what. It never says promote."""

    def period(tally: Tally) -> dict[str, Any]:
        return {g: dict(zip(("passed", "assessed", "requested"), c, strict=True))
                for g, *c in zip(tally.groups, tally.passed, tally.assessed, tally.requested, strict=True)}  # fmt: skip

    def exact(number: Fraction | None) -> str | None:
        return None if number is None else as_text(number)

    d = comparison.decomposition
    return {
        "format": "evalkit decision 1",
        "kind": "mix",
        "tallies": {"digest": tallies_digest(tallies), "periods": {name: period(t) for name, t in tallies.items()}},
        "reference": {
            "reference_id": reference.reference_id,
            "digest": digest_of(reference),
            "weights": {g: as_text(w) for g, w in reference.weights.items()},
            "bound_to_data": comparison.bound,
        },
        "baseline": comparison.before.period,
        "candidate": comparison.after.period,
        "observed": [exact(r) for r in comparison.observed],
        "standardised": [exact(r) for r in comparison.standardised],
        "equal_weights": [exact(r) for r in comparison.equal],
        "rate_effect": exact(d.rate_effect if d else None),
        "mix_effect": exact(d.mix_effect if d else None),
        "reversal": comparison.reversal,
        "blocking_groups": [{"condition": c.name, "state": c.state, "numbers": c.numbers} for c in comparison.blocking],
        "verdict": comparison.verdict,
        "reasons": list(comparison.reasons),
    }


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    r"""Rows as CSV; a carriage return alone, which some readers take for the end of a row, is in quotes too.

    >>> csv_text([["a", "b\rc"]])
    'a,"b\rc"\n'
    """
    lines: list[str] = []
    csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n").writerows(rows)
    return "".join(f"{line[:-2]}\n" for line in lines)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all: a temporary file beside it, synced, then renamed over it."""
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
