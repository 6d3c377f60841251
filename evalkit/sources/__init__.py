"""Readers: files or a frame in, a campaign or tallies out. The format is recognised by content, never by name alone."""

from __future__ import annotations

import codecs
import glob
import gzip
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from .._exact import natural
from ..campaign import PASS, Campaign, Inventory
from ..errors import EvalkitError, InputError, listing, plain, quote
from ..records import bundled, opened
from ..reweighting import Tally
from . import _tables, harbor, inspect_ai, lm_eval, presets, promptfoo, swe_bench, table, tau2_bench, tau_bench, terminal_bench
from ._join import ACCEPT, join
from ._json import decoded, parsed, uncollected
from ._rows import Format, Options, Rows, n_of
from .table import Columns

__all__ = ["files_of", "read_campaign", "read_inventory", "read_tallies"]

_MOST_BYTES = 4_000_000_000  # unpacked
_MOST_FILES = 100_000
FORMATS = (
    inspect_ai.FORMAT, promptfoo.FORMAT, lm_eval.FORMAT, tau_bench.FORMAT, tau2_bench.FORMAT, terminal_bench.FORMAT, harbor.FORMAT,
    swe_bench.FORMAT, *presets.FORMATS,
)  # fmt: skip
_COMPANIONS = (
    (lm_eval.companion, "lm-evaluation-harness results without the samples", "the samples_TASK_TIME.jsonl of that run (--log_samples)"),
    (tau2_bench.companion, "one tau2-bench simulation", "the results.json beside its folder"),
    (harbor.companion, "the totals of a harbor job", "the result.json of each trial"),
)
_TABLE = "a table"

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@uncollected()
def read_campaign(
    paths: Paths = "",
    *,
    candidate_names: Mapping[str, str] | str = "",
    scorer: str = "",
    passes: str = "",
    group: str = "",
    task: str = "",
    repetition: str = "repetition",
    accept: Sequence[str] = (),
    keep: str = "",
    columns: Columns | str = "",
    inventory: str | os.PathLike[str] = "",
) -> Campaign:
    """A campaign from the files that a harness wrote, or from tables; an empty path reads the bundled fixture.

    ``paths`` is a file, a folder, a glob or a list of them, plain, gzip or Zstandard. Several files are one campaign: a file
    per candidate or per repetition. ``Campaign.notes`` say what was read: the format, and that rows = cells + superseded.

    - ``candidate_names`` names candidates by file, folder or own name: ``{"a.json": "A"}``, or ``"a.json=A; b.json=B"``.
    - ``scorer`` chooses where a file has several scorers, metrics or filters; ``passes`` says which numbers pass, such as
      ``">= 0.5"``, where they are not 0 and 1; ``group`` names a metadata key; ``task`` keeps the files of one task.
    - ``columns`` declares the columns of a table (``table.Columns``, or its text); then no other format is looked for.
    - ``repetition`` is ``"repetition"`` (the file's own id, else one per file), ``"file"`` (each file is a run of its own) or
      ``"order"`` (the rows of each candidate and instance are numbered).
    - ``accept`` names what to take as it is: task, task_version, dataset, scorer, grader (files that differ in it), partial
      (a run that did not finish), invalidated. ``keep="last"`` takes the last log of a run that was retried.
    - ``inventory`` is a CSV of the declared instances.

    Raises: InputError, with the file and the place, for anything ambiguous or that could be counted twice.

    >>> read_campaign().candidates
    ('BASELINE', 'CLAUDE', 'MERGE')
    """
    if repetition not in ("", "repetition", "order", "file"):
        raise InputError(f"repetition {quote(repetition)}", '"repetition" (the file\'s own), "order" (rows in file order) or "file"',
                         "correct the parameter")  # fmt: skip
    accepted = [word.strip() for word in accept.split(";") if word.strip()] if isinstance(accept, str) else list(accept)
    if set(accepted) - set(ACCEPT) or keep not in ("", "last"):
        found = f"keep {quote(keep)}" if keep not in ("", "last") else f"accept {listing([w for w in accepted if w not in ACCEPT])}"
        raise InputError(found, f"accept: {', '.join(ACCEPT)}; keep: last", "correct the parameter")
    declared = read_inventory(inventory) if inventory else None
    names, said = _names(candidate_names), Columns.parse(columns) if isinstance(columns, str) else columns
    files = files_of(paths) if paths != "" else [bundled("fixtures/claude_merge.csv")]
    read = (
        _read(files, Options(scorer, passes, group, task))
        if said is None
        else _Read(None, [], [(file, _content(file)) for file in files], [])
    )
    if read.known is None:
        _refuse_unused(None, Options(scorer, passes, group, task))
        return _tables.campaign(read.tables, columns=said, names=names, repetition=repetition, inventory=declared)
    parts = harbor.together(read.parts) if read.known is harbor.FORMAT else read.parts
    made = join(read.known.name, parts, files=len(read.parts), names=names, accept=accepted, keep=keep, repetition=repetition,
                inventory=declared, notes=read.notes)  # fmt: skip
    if passes and not (made.codes == PASS).any():
        raise InputError(f"no row that passes {quote(passes)}", "at least one", "check the condition", file=files[0].parent)
    return made


class _Read(NamedTuple):
    """What the files are: one harness's rows, or tables."""

    known: Format | None
    parts: list[tuple[Path, Rows]]
    tables: list[tuple[Path, bytes]]
    notes: list[str]


def _read(files: Sequence[Path], options: Options) -> _Read:
    """Every file, all of one format."""
    taken, aside = _one_name(files)
    read = _Read(None, [], [], [f"{n_of(aside, 'other file')} of the tool's own, without results"] if aside else [])
    first: dict[str, Path] = {}
    lone: dict[Path, Any] = {}
    for file in taken:
        try:
            value = _value(file)
            known = _recognise(value)
            if known is None and not isinstance(value, bytes) and not _tables.plain_rows(value):
                lone[file] = value
                continue
            first.setdefault(known.name if known else _TABLE, file)
            if len(first) > 1:
                (one, its), (other, strange) = first.items()
                raise InputError(
                    f"{other} beside {one} ({its})", "files of one tool", "read them apart, or remove the stray file", file=strange
                )
            if known is None:
                read.tables.append((file, value if isinstance(value, bytes) else _content(file)))
                continue
            _refuse_unused(known, options)
            rows = known.rows(file, value, options)
            if not rows.rows and options.task in ("", rows.facts.task):
                raise InputError("no rows", "at least one result", "check that the run wrote its results")
            read = read._replace(known=known)
            read.parts.append((file, rows))
        except EvalkitError as error:
            raise error.at(file) from None
    for file, value in lone.items():
        _refuse_lone(file, value, bool(first))
    if lone:
        read.notes.append(f"{n_of(len(lone), 'companion file')} read with them")
    return _of_one_task(read, options.task)


def _of_one_task(read: _Read, task: str) -> _Read:
    """Without the files of other tasks, which their readers left empty."""
    others = sorted({rows.facts.task for _, rows in read.parts if not rows.rows})
    kept = [(file, rows) for file, rows in read.parts if rows.rows]
    if others and not kept:
        raise InputError(f"no task {quote(task)}", f"one of {listing(others, 12)}", "choose one of them")
    return read._replace(parts=kept, notes=[*read.notes, *([f"files of other tasks left out: {listing(others)}"] if others else [])])


def _refuse_unused(known: Format | None, options: Options) -> None:
    """A choice that a format does not offer would be a choice that nobody applies."""
    for choice, value in vars(options).items():
        if value and (known is None or choice not in known.choices):
            offered = ", ".join(known.choices) if known else ""
            raise InputError(f"{choice}={quote(value)} for {known.name if known else _TABLE}", f"only {offered}" if offered else "no such choice",
                             "leave it out" if known else 'leave it out, or declare the table: columns="candidate=model; passes=>= 0.5"')  # fmt: skip


def _one_name(files: Sequence[Path]) -> tuple[list[Path], int]:
    """terminal-bench and harbor keep their results in files of one name, among logs that hold none."""
    for module in (terminal_bench, harbor):
        named = [file for file in files if file.name.removesuffix(".gz") == module.ONLY]
        for file in named if len(files) > 1 else []:
            try:
                if _recognise(_value(file)) is module.FORMAT:
                    return named, len(files) - len(named)
            except InputError:
                continue
    return list(files), 0


def _recognise(value: Any) -> Format | None:
    """The one format whose content this is."""
    found = [] if isinstance(value, bytes) else [known for known in FORMATS if known.mine(value)]
    if len(found) > 1:
        raise InputError(f"content that {listing([known.name for known in found])} all could have written", "one of them", "read it alone")
    return found[0] if found else None


def _refuse_lone(file: Path, value: Any, beside_others: bool) -> None:
    """A file of no format: a companion of the others is fine, any other is refused with what was looked for."""
    for companion, what, needs in _COMPANIONS:
        if companion(value):
            if beside_others:
                return
            raise InputError(what, needs, "name the files that hold the results", file=file)
    keys = ", ".join(map(plain, list(value)[:8])) if isinstance(value, dict) else type(value).__name__
    raise InputError(
        f"JSON of no known format ({keys or 'empty'})",
        "one of "
        + "; ".join(f"{known.name} ({known.looks_for})" for known in FORMATS)
        + f"; {_TABLE} (candidate,instance,repetition,outcome)",
        "remove a stray file, or save the results as a table",
        file=file,
    )


def _names(given: Mapping[str, str] | str) -> dict[str, str]:
    """Candidate names from a mapping, or from the text ``file=name; file=name``."""
    if not isinstance(given, str):
        return dict(given)
    pairs = [part.partition("=") for part in given.split(";") if part.strip()]
    if any(not mark or not key.strip() or not value.strip() for key, mark, value in pairs):
        raise InputError(f"candidate_names {quote(given)}", "file=name; file=name", "correct the parameter")
    return {key.strip(): value.strip() for key, _, value in pairs}


def files_of(paths: Paths) -> list[Path]:
    """The files that a path, a folder, a glob or a list of them names, each once, in natural order; hidden files are left out."""
    found: dict[Path, None] = {}
    for entry in [paths] if isinstance(paths, str | os.PathLike) else paths:
        path, pattern = Path(entry), os.fspath(entry)
        try:
            there, folder = path.exists(), path.is_dir()
        except OSError:  # no name can be so long: opening it says so
            there, folder = False, False
        if glob.has_magic(pattern) and not there:
            matches = map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
            named = [file for match in matches for file in (_inside(match) if match.is_dir() else [match])]
        else:
            named = _inside(path) if folder else [path]
        if not named:
            raise InputError(f"no file in {quote(pattern)}", "at least one result file", "check the path")
        found |= dict.fromkeys(named)
    if not found:
        raise InputError("no paths", "a file, a folder or a glob", "name what to read")
    if len(found) > _MOST_FILES:
        raise InputError(f"{len(found)} files", f"at most {_MOST_FILES}", "name the folder or the glob of one campaign")
    return sorted(found, key=lambda file: natural(str(file)))


def _inside(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*") if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    for path in found:
        if path.is_symlink() and path.is_dir() and not path.resolve().is_relative_to(folder.resolve()):
            raise InputError("a link to a folder elsewhere", "files, and links to files", "name that folder beside this one", file=path)
    return [path for path in found if not path.is_dir()]


def read_inventory(path: str | os.PathLike[str]) -> Inventory:
    """The declared instances from a CSV with the columns ``instance`` and optionally ``group``, ``cluster``."""
    try:
        return table.inventory(_content(Path(path)))
    except EvalkitError as error:
        raise error.at(path) from None


def read_tallies(path: str | os.PathLike[str] = "") -> dict[str, Tally]:
    """Tallies by period from a canonical CSV; an empty path reads the bundled fixture.

    Raises: InputError where the file is not such a table, MixError where its counts cannot be.

    >>> list(read_tallies())
    ['baseline', 'candidate']
    """
    file = Path(path) if path else bundled("fixtures/traffic_mix.csv")
    try:
        return table.tallies(_content(file))
    except EvalkitError as error:
        raise error.at(file) from None


def _value(file: Path) -> Any:
    """An archive, the value of a JSON file, or the bytes of what is neither."""
    data = _content(file)
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return inspect_ai.open_archive(data)
    if data[:100].removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"[", b"{"):
        text, keys = decoded(data)
        del data  # gigabytes, perhaps
        return parsed(text, keys)
    return presets.lines(data) or data


def _content(path: Path) -> bytes:
    """The bytes of a file, gzip and Zstandard unpacked up to a limit."""
    try:
        with opened(path) as handle:
            head = handle.read(4)
            most = min(_MOST_BYTES, inspect_ai.unpacks_to(handle.seek(0, os.SEEK_END)))
            handle.seek(0)
            if head[:2] == b"\x1f\x8b":
                data = gzip.GzipFile(fileobj=handle).read(most + 1)
            elif head == b"\x28\xb5\x2f\xfd":
                data = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(handle, read_across_frames=True).read(most + 1)
            else:
                return handle.read()
    except (OSError, EOFError, zlib.error, zstandard.ZstdError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"no readable file ({reason})", "a campaign or tally file", "check the path", file=path) from None
    if len(data) > most:
        raise InputError(
            "a packed file that unpacks to gigabytes, or to more than a thousand times its size",
            "a result file",
            "check that this is the right file",
            file=path,
        )
    return data
