"""Inspect logs: ``.eval`` (a zip of JSON members, deflated or Zstandard) and ``.json``.

One row per sample and epoch, from the samples and never from the reductions, since those average over the epochs that are
left when one errored. ``C`` passes; ``I``, ``P`` and ``N`` do not; as scores they are 1, 0, 1/2 and 0. NaN is unscored.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import zstandard

from .._exact import decimal
from ..campaign import CODE, FAIL, PASS
from ..errors import InputError, listing, quote
from ._json import load, name, number, part, refuse, take, text
from ._rows import Facts, Format, Options, Row, Rows, choose, disagreement, has, mean, n_of, verdict

_GRADES = {"C": Fraction(1), "P": Fraction(1, 2), "I": Fraction(0), "N": Fraction(0)}
_LARGEST = 512 * 1024 * 1024  # bytes of one member, unpacked
_LARGEST_SUM = 8 * 1024 * 1024 * 1024
_SMALL = 64 * 1024 * 1024
_FOLD = 1000  # times its own size that a larger file may unpack to; results stay well below it, and a bomb does not
_ZSTANDARD = 93  # the zip method that Python before 3.14 does not unpack


class Archive(dict[str, Any]):
    """The header of an ``.eval`` file, and its samples, unpacked one at a time."""

    def __init__(self, header: dict[str, Any], members: _Members) -> None:
        super().__init__(header)
        self.members = members


def unpacks_to(size: int) -> int:
    """How many bytes a packed file of this size may hold."""
    return max(_SMALL, _FOLD * size)


class _Members:
    """The members of a zip, in memory only: no name in it ever becomes a path."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.unpack = zstandard.ZstdDecompressor(max_window_size=2**27)
        try:
            self.zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise InputError(f"a zip that breaks ({error})", "a whole .eval log", "was the copy cut short?") from None
        infos = self.zip.infolist()
        self.infos = {info.filename: info for info in infos}
        if len(self.infos) != len(infos):
            ((twice, _),) = Counter(info.filename for info in infos).most_common(1)
            raise InputError(
                f"member {quote(twice)} twice", "each sample once", "convert the log again; the kit does not choose between two"
            )
        if sum(info.file_size for info in infos) > min(_LARGEST_SUM, unpacks_to(len(data))):
            raise InputError("members that unpack to gigabytes, or to more than a thousand times the file's size", "an .eval log",
                             "check that this is the right file")  # fmt: skip
        places = sorted((info.header_offset, info.header_offset + 30 + info.compress_size) for info in infos)
        if any(end > start for (_, end), (start, _) in pairwise(places)):
            raise InputError("members that overlap", "each sample once", "was the file changed? copy it again")

    def load(self, member: str) -> Any:
        """The JSON of one member, unpacked up to a limit."""
        info = self.infos[member]
        try:
            if info.file_size > _LARGEST:
                raise InputError(f"{info.file_size} bytes", f"at most {_LARGEST}", "check that this is the right file")
            packed = self._zstandard(info) if info.compress_type == _ZSTANDARD else self.zip.open(info)
            with packed as stream:
                unpacked = stream.read(info.file_size + 1)
            if len(unpacked) != info.file_size or zlib.crc32(unpacked) != info.CRC:
                raise InputError("other bytes than its size and checksum say", "a whole member", "was the file changed or cut short?")
            return load(unpacked)
        except InputError as error:
            error.found = f"in member {quote(member)}: {error.found}"
            raise
        except (
            zipfile.BadZipFile,
            zstandard.ZstdError,
            zlib.error,
            NotImplementedError,
            RuntimeError,
            OSError,
            EOFError,
            struct.error,
            ValueError,
        ) as error:
            raise InputError(
                f"member {quote(member)} that cannot be unpacked ({error})", "deflate or Zstandard", "copy the file again"
            ) from None

    def _zstandard(self, info: zipfile.ZipInfo) -> Any:
        head = self.data[info.header_offset : info.header_offset + 30]
        before, extra = struct.unpack("<26xHH", head)
        start = info.header_offset + 30 + before + extra
        packed = self.data[start : start + info.compress_size]
        return self.unpack.stream_reader(packed)


def open_archive(data: bytes) -> Archive:
    """An ``.eval`` file's header; a run that died has only its journal."""
    members = _Members(data)
    for member in ("header.json", "_journal/start.json"):
        if member in members.infos:
            header = members.load(member)
            if not isinstance(header, dict):
                refuse(header, member, "an object")
            return Archive(header if member == "header.json" else {**header, "status": "started"}, members)
    raise InputError(f"a zip with neither header.json nor _journal/start.json among {len(members.infos)} members", "an Inspect .eval log",
                     "unpack it if it holds result files; save a spreadsheet as CSV")  # fmt: skip


def _samples(log: dict[str, Any]) -> Iterator[Any]:
    if isinstance(log, Archive):
        for member in log.members.infos:
            if member.startswith("samples/") and member.endswith(".json"):
                yield log.members.load(member)
    else:
        samples = log.get("samples")
        yield from samples if isinstance(samples, list | None) and samples else []


def rows(_file: Path, log: Any, options: Options) -> Rows:
    """The samples of one log under one scorer."""
    if log.get("version") not in (1, 2):
        refuse(log.get("version"), "version", "an Inspect log of version 2 (or 1)")
    evaluation = take(log, "eval")
    candidate, task = name(evaluation, "model"), text(evaluation, "task")
    if options.task not in ("", task):
        return Rows(Facts(task=task), ())
    samples = [_thin(sample, place) for place, sample in enumerate(_samples(log), 1)]
    if not samples:
        raise InputError(f"a log with status {quote(text(log, 'status'))} and no samples", "a log with its samples",
                         "read the .eval file that holds them, or run it with its samples logged")  # fmt: skip
    names = list(dict.fromkeys(key for sample in samples for key in sample["values"]))
    scorer = choose(names, options.scorer, "scorer") if names else options.scorer
    if not names and any(not sample["error"] for sample in samples):
        raise InputError(f"{len(samples)} samples and no score", "a scored log", "score it first: inspect score")
    group = options.group or ("group" if all("group" in sample["metadata"] for sample in samples) else "")
    found = []
    for sample in samples:
        try:
            found.append(_row(candidate, sample, scorer, group, options.passes))
        except InputError as error:
            error.found += " in sample {}, epoch {}".format(*map(quote, sample["cell"]))
            raise
    status = text(log, "status")
    dataset, epochs = part(evaluation, "dataset", dict), part(evaluation, "config", dict).get("epochs")
    facts = Facts(
        version=text(evaluation, "packages", "inspect_ai"),
        task=task,
        task_version=text(evaluation, "task_version"),
        dataset=" of ".join(filter(None, (text(dataset, "name"), text(dataset, "samples") and text(dataset, "samples") + " samples"))),
        scorer=scorer,
        grader=_grader(evaluation, scorer),
        retry_id=text(evaluation, "task_id"),
        created=text(evaluation, "created"),
        unfinished="" if status == "success" else f"a run with status {quote(status or 'none')}",
        invalidated="a log marked invalidated" if log.get("invalidated") is True else "",
        notes=tuple(_notes(log, samples, found, scorer)),
    )
    planned = [str(i) for i in part(dataset, "sample_ids", list)]
    return Rows(facts, found, planned, [str(e) for e in range(1, epochs + 1)] if type(epochs) is int and 0 < epochs < 10**6 else [])


def _thin(sample: Any, place: int) -> dict[str, Any]:
    """What a row needs of a sample; its transcript is dropped."""
    identity = name(sample, "id", place), name(sample, "epoch", place)
    scores = sample.get("scores", {"score": sample["score"]} if sample.get("score") else {})
    if not isinstance(scores, dict | None):
        refuse(scores, "scores", "an object of scores by scorer", place)
    values: dict[str, Any] = {}
    for scorer, score in (scores or {}).items():
        value = take(score, "value", place)
        values |= {f"{scorer}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {scorer: value}
    return {
        "place": place,
        "cell": identity,
        "values": values,
        "error": sample.get("error"),
        "invalid": sample.get("invalidation"),
        "retried": bool(sample.get("error_retries")),
        "metadata": part(sample, "metadata", dict),
    }


def _row(candidate: str, sample: dict[str, Any], scorer: str, group: str, passes: str) -> Row:
    code, score, detail = _outcome(sample, scorer, passes)
    if group and group not in sample["metadata"]:
        raise InputError(f"no metadata {quote(group)}", f"one of {listing(list(sample['metadata']), 8) or 'no metadata'}",
                         "choose another group", row=sample["place"])  # fmt: skip
    instance, epoch = sample["cell"]
    return Row(
        candidate,
        instance,
        epoch,
        code,
        sample["place"],
        detail,
        name(sample["metadata"], group, sample["place"]) if group else None,
        numbers={"score": score},
    )


def _outcome(sample: dict[str, Any], scorer: str, passes: str) -> tuple[int, Fraction | None, str]:
    """A recorded score outranks an error, and a person's withdrawal outranks the score."""
    if sample["invalid"]:
        return CODE["ungraded"], None, "invalidated: " + (text(sample["invalid"], "reason") or "no reason given")
    value, error = sample["values"].get(scorer), sample["error"]
    score = _score(value, scorer, sample["place"])
    if score is None and error:
        message = text(error, "message") or "error"
        kind = "timeout" if message.startswith("TimeoutError") else "cancelled" if message.startswith("CancelledError") else "error"
        return CODE[kind], None, message[:500]
    if isinstance(value, str) and not passes:
        return (PASS if value == "C" else FAIL), score, {"P": "partial (P)", "N": "no answer (N)"}.get(value, "")
    return verdict(score, passes, f"{scorer} value", sample["place"]), score, "" if score is not None else f"no value of {scorer}"


def _score(value: Any, scorer: str, place: int) -> Fraction | None:
    if isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, str):
        if value in _GRADES:
            return _GRADES[value]
        refuse(value, f"{scorer} value", "C, I, P, N, a number or true and false", place)
    if value is not None and not isinstance(value, int | Decimal):
        refuse(value, f"{scorer} value", "one value per sample", place)
    return number(value, f"{scorer} value", place)


def _grader(evaluation: dict[str, Any], scorer: str) -> str:
    """The options of the scorer that was used, such as the model that graded."""
    for entry in part(evaluation, "scorers", list):
        if isinstance(entry, dict) and scorer.split(".")[0] == entry.get("name") and entry.get("options"):
            return json.dumps(entry["options"], sort_keys=True, default=str)[:500]
    return ""


def _notes(log: dict[str, Any], samples: list[dict[str, Any]], found: list[Row], scorer: str) -> Iterator[str]:
    """What the log's own figure leaves out, and whether its rows give it."""
    unscored = [row for row in found if row.numbers["score"] is None]
    for entry in part(part(log, "results", dict), "scores", list):
        mine = scorer in (text(entry, "name"), f"{text(entry, 'scorer')}.{text(entry, 'name')}") and text(entry, "reducer") in ("", "mean")
        metrics = part(entry, "metrics", dict) if mine else {}
        for metric in ("accuracy", "mean"):
            if metric in metrics:
                by_instance = defaultdict(list)
                for row in found:
                    if (score := row.numbers["score"]) is not None:
                        by_instance[row.instance].append(score)
                published = number(take(metrics[metric], "value"), metric)
                given = mean([m for values in by_instance.values() if (m := mean(values)) is not None])
                yield from disagreement(f"{scorer} {metric}", published, given)
                if unscored and published is not None:
                    yield f"the log's own {metric} {decimal(published, 4)} leaves out {len(unscored)} of {len(found)} cells, which have no score"
    partial = sum(row.detail == "partial (P)" for row in found)
    if partial:
        yield f"{n_of(partial, 'partial verdict')} (P): no pass, and 1/2 as a score"
    redone = sum(1 for sample in samples if sample["retried"])
    if redone:
        yield f"{n_of(redone, 'sample')} retried after an error"


FORMAT = Format(
    "Inspect log",
    "eval, status and samples",
    lambda value: isinstance(value, Archive) or (has(value, "eval", "status") and has(value["eval"], "model", "task")),
    rows,
    ("scorer", "passes", "group", "task"),
)
