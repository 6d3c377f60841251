"""Run a report notebook with declared parameters only, export its page, and say the verdict by exit status.

The verdict travels in the notebook's own output, so plain papermill and Run All give the same one. An output folder holds
a whole run or no ``decision.json``: the old one goes first, the new one comes last.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from . import errors
from ._exact import percent
from .bounds import decide_by_bounds
from .campaign import Campaign
from .decide import KEEP, PROMOTE, UNDECIDED, Decision, ReleaseRule, parse_picker, parse_sign_offs
from .errors import EvalkitError, InputError, MixError, _escaped, listing, plain, quote
from .evidence import RERUN_MIME
from .records import bundled, canonical, csv_text, decision_record, mix_record, opened, read_reference, read_rule, write_whole
from .reweighting import Comparison, Reference, Tally, compare, is_bound
from .show import DECISION_MIME, DEMONSTRATION
from .sources import files_of, read_campaign, read_tallies
from .tabulate import _commentary
from .uncertainty import with_margin

__all__ = ["Mix", "Release", "mix", "release", "run", "verify"]

STATUS = {PROMOTE: 0, KEEP: 10, UNDECIDED: 11, "compared": 0, "unavailable": 11}
REFUSED = 12
FILES = ("report.ipynb", "report.html", "summary.md", "rerun.csv", "provenance.json", "decision.json")  # in the order of writing
INPUTS = ("campaign", "inventory", "rule", "tallies", "reference")
LOCK = ".evalkit.lock"
REMAINS = (".run-*", *(f".{name}.????????" for name in FILES))  # what a run that was killed leaves
_YAML = "tag:yaml.org,2002:"
_LARGEST_YAML = 1_000_000  # bytes
KINDS = ("release", "mix")
# The kernel ends with its runner: its own watch waits for process 1 to adopt it, and on a desktop or under CI another may.
_KERNEL = """c = get_config()
c.IPKernelApp.log_level = 50
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    try:
        os.kill({runner}, 0)
    except ProcessLookupError:
        os._exit(1)
"""


@dataclass(frozen=True)
class Release:
    """What a release report shows."""

    campaign: Campaign
    rule: ReleaseRule
    decision: Decision
    reference: Reference | None
    bound: bool  # no reference, or one whose grouping rule and grader version the data name
    demonstration: bool

    @property
    def record(self) -> dict[str, Any]:
        """The decision record."""
        return decision_record(self.campaign, self.rule, self.decision)


@dataclass(frozen=True)
class Mix:
    """What a mix report shows."""

    tallies: Mapping[str, Tally]
    reference: Reference
    comparison: Comparison
    demonstration: bool

    @property
    def record(self) -> dict[str, Any]:
        """The comparison record."""
        return mix_record(self.tallies, self.reference, self.comparison)


def release(
    *,
    campaign: str = "",
    incumbent: str = "",
    rule: str = "",
    picker: str = "cell_mean",
    sign_offs: str = "",
    inventory: str = "",
    reference: str = "",
    repetition: str = "repetition",
    candidate_names: str = "",
    columns: str = "",
    scorer: str = "",
    passes: str = "",
    group: str = "",
    task: str = "",
    accept: str = "",
    keep: str = "",
) -> Release:
    """Read and decide as the release report does; the parameters are the notebook's. Bundled data have the incumbent BASELINE."""
    _refuse_other_than_text(locals())
    data = read_campaign(
        campaign,
        candidate_names=candidate_names,
        scorer=scorer,
        passes=passes,
        group=group,
        task=task,
        repetition=repetition,
        accept=accept,
        keep=keep,
        columns=columns,
        inventory=inventory,
    )
    release_rule = read_rule(rule)
    if release_rule.required_repetitions is not None:
        data = data.require(release_rule.required_repetitions)
    named = incumbent or ("" if campaign else "BASELINE")
    decision = decide_by_bounds(data, release_rule, incumbent=named, picker=parse_picker(picker), sign_offs=parse_sign_offs(sign_offs))
    decision = with_margin(data, release_rule, decision)
    declared = read_reference(reference) if reference else None
    bound = declared is None or is_bound(data.bindings, declared)
    return Release(data, release_rule, decision, declared, bound, not campaign)


def mix(*, tallies: str = "", baseline: str = "", candidate: str = "", reference: str = "", blocking_groups: str = "") -> Mix:
    """Read and compare as the mix report does; with more than two periods the pair must be named."""
    _refuse_other_than_text(locals())
    found = read_tallies(tallies)
    names = list(found)
    if not tallies and not baseline and not candidate:
        baseline, candidate = "baseline", "candidate"
    if not baseline or not candidate:
        raise InputError(
            f"periods {listing(names, 13)} and no pair", "two periods to compare", "name them: -p baseline PERIOD -p candidate PERIOD"
        )
    for name in (baseline, candidate):
        if name not in found:
            raise InputError(f"no period {quote(name)}", "one of " + listing(names, 13), "name a period of the tallies")
    if baseline == candidate:
        raise InputError(f"period {quote(baseline)} on both sides", "two periods", "name another one")
    declared = read_reference(reference)
    groups = [part.strip() for part in blocking_groups.split(";") if part.strip()]
    for name in groups:
        if name not in found[candidate].groups:
            raise MixError(f"no blocking group {quote(name)}", "one of " + listing(found[candidate].groups), "correct the name")
    return Mix(found, declared, compare(found[baseline], found[candidate], declared, groups), not tallies)


def _refuse_other_than_text(parameters: Mapping[str, object]) -> None:
    """Plain papermill turns 007 into 7 on its way here; a number can no longer say which text it was."""
    for name, value in parameters.items():
        if not isinstance(value, str):
            raise InputError(
                f"{quote(value)} ({type(value).__name__}) for parameter {name}", "text", f"pass it with papermill's -r: -r {name} VALUE"
            )


def run(kind: str, given: Sequence[tuple[str, str]], output: Path, *, parameter_file: Path | None = None) -> int:
    """Run the report ``kind`` into the folder ``output`` and return its status; prints the verdict and the counts.

    Raises: EvalkitError for what the caller turns into status 12.
    """
    notebook = bundled(f"notebooks/report_{kind}.ipynb")
    for name, value in given:
        if name == "campaign" and os.path.isdir(value) and output.resolve().is_relative_to(Path(value).resolve()):  # noqa: PTH112 (a name may be too long for Path)
            raise InputError(f"the output folder {output} inside the campaign folder", "another place", "choose another folder for -o")
    with _locked(output) as lock:
        _clear(output)
        parameters = _parameters(notebook, given, parameter_file)
        before = _inputs(parameters)
        stamps = _stamps(parameters, before)
        started = datetime.now(UTC)
        with tempfile.TemporaryDirectory(prefix=".run-", dir=output, ignore_cleanup_errors=True) as scratch:
            executed = _execute(notebook, Path(scratch) / "report.ipynb", parameters)
        told, record = _carried(executed, DECISION_MIME)
        if _inputs(parameters) != before or _stamps(parameters, before) != stamps:
            raise InputError("an input file that changed while it was read", "files that stand still", "run again when they are written")
        pages = {
            "report.ipynb": executed,
            "report.html": _page(executed, told.removeprefix(f"{DEMONSTRATION}\n").splitlines()[0]),
            "summary.md": summary(told, record),
        }
        if kind == "release":
            pages["rerun.csv"] = _csv(_carried(executed, RERUN_MIME)[1])
        pages["decision.json"] = canonical(record)
        provenance = {
            "format": "evalkit provenance 1",
            "kind": kind,
            "parameters": parameters,
            "inputs": before,
            "outputs": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in pages.items()},
            "started": started.isoformat(timespec="seconds"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "packages": {name: importlib.metadata.version(name) for name in ("numpy", "papermill", "nbconvert", "matplotlib")},
        }
        pages["provenance.json"] = json.dumps(provenance, indent=2, ensure_ascii=True) + "\n"
        if not os.path.samestat(os.fstat(lock), os.stat(output / LOCK)):  # noqa: PTH116 (as samestat wants it)
            raise InputError(f"another folder at {output} than the run began in", "one that stays in place", "run again")
        for name in FILES:
            if name in pages:
                write_whole(output / name, pages[name])
    step_summary(pages["summary.md"])
    print(told)
    for candidate, line in _counts(record):
        print(f"  {plain(candidate)}: {line}")
    print(_escaped(f"{output / 'report.html'}"))
    return STATUS[_word(record)]


def step_summary(text: str) -> None:
    """Append to the job summary of a GitHub workflow, where there is one."""
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target:
        try:
            with Path(target).open("a", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:  # the verdict stands without its copy
            print(f"no job summary written: {target} ({error.strerror})", file=sys.stderr)


def summary(told: str, record: Mapping[str, Any]) -> str:
    """The verdict, its reasons and the counts as Markdown in which no name is markup."""
    lines = told.splitlines()
    demonstration = [lines.pop(0), ""] if lines[0].startswith("Demonstration") else []
    head, rest = lines[0], lines[1:]
    body = [*map(markdown, demonstration), f"## {markdown(head)}", ""]
    body += [f"- {markdown(line.removeprefix('- '))}" for line in rest]
    rows = [f"| {markdown(name)} | {markdown(line)} |" for name, line in _counts(record)]
    return "\n".join([*body, "", f"| {'candidate' if record['kind'] == 'release' else 'rate'} | counts |", "|---|---|", *rows, ""])


def markdown(text: str) -> str:
    r"""Text that Markdown and HTML show as it is.

    >>> markdown("<b>*x*|")
    '&lt;b&gt;\\*x\\*\\|'
    """
    safe = plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"^([0-9]*)(?=[-+.)])|([\\`*_\[\]|~$@#])|(?<=:)(?=//)|(?<=www)(?=\.)", lambda m: f"{m[1] or ''}\\{m[2] or ''}", safe)


def verify(output: Path) -> list[str]:
    """Recompute the decision of a finished run from its inputs; every difference, in words. None means verified.

    Raises: RecordError or InputError where the folder or an input cannot be read at all.
    """
    texts = {}
    for name in ("provenance.json", "decision.json"):
        try:
            texts[name] = json.loads((output / name).read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"no readable {name} ({error.__class__.__name__})", "the folder of a finished run", "run the report first", file=output
            ) from None
    provenance, stored = texts["provenance.json"], texts["decision.json"]
    try:
        kind, parameters, inputs, outputs = (provenance[key] for key in ("kind", "parameters", "inputs", "outputs"))
        arguments = {str(name): str(value) for name, value in parameters.items()}
        expected = [name for name in FILES if name != "provenance.json" and (name != "rerun.csv" or kind == "release")]
        differences = [
            f"{name} is not the file that the run wrote"
            for name in expected
            if not (output / name).is_file() or _sha256(output / name) != outputs.get(name)
        ]
        now = _inputs(arguments)
        files = {
            **{file: "" for entry in now.values() for file in entry},
            **{file: digest for entry in inputs.values() for file, digest in entry.items()},
        }
        found = {file: digest for entry in now.values() for file, digest in entry.items()}
        differences += [f"input {plain(file)} changed since the run" for file, digest in files.items() if found.get(file) != digest]
        again = (release(**arguments) if kind == "release" else mix(**arguments)).record
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"a provenance.json that cannot be followed ({error})", "one that the kit wrote", "run the report again", file=output
        ) from None
    return differences + _differences("decision", stored, json.loads(canonical(again)))


def _differences(place: str, stored: Any, again: Any) -> list[str]:
    if isinstance(stored, dict) and isinstance(again, dict):
        keys = sorted({*stored, *again})
        return [line for key in keys for line in _differences(f"{place}.{plain(key)}", stored.get(key), again.get(key))]
    if isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        return [line for i, pair in enumerate(zip(stored, again, strict=True)) for line in _differences(f"{place}[{i}]", *pair)]
    return [] if stored == again else [f"{place}: stored {quote(stored)}, recomputed {quote(again)}"]


@contextlib.contextmanager
def _locked(output: Path) -> Iterator[int]:
    """One run at a time in a folder that is ours: refuse another's files rather than replace them."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        foreign = [name for name in FILES if (output / name).exists()] if not (output / LOCK).exists() else []
        if foreign:
            raise InputError(f"{listing(foreign)} in {output}", "an empty folder, or one of an earlier run", "choose another folder for -o")
        stream = (output / LOCK).open("a")
    except OSError as error:
        raise InputError(
            f"no way to write into {output} ({error.strerror})", "a folder to write into", "choose another folder for -o"
        ) from None
    with stream:
        try:
            if sys.platform == "win32":  # pragma: no cover
                import msvcrt

                msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another run in {output}", "one run at a time", "wait for it, or choose another folder for -o") from None
        try:
            yield stream.fileno()
        except OSError as error:  # no room, a limit, a folder that went away
            raise InputError(
                f"no way to finish the run in {output} ({plain(str(error))})", "room to write", "make room, or choose another folder for -o"
            ) from None


def _parameters(notebook: Path, given: Sequence[tuple[str, str]], parameter_file: Path | None) -> dict[str, str | int]:
    """Declared parameters only, each once, text kept as text; the command line wins over the file."""
    import papermill

    declared = papermill.inspect_notebook(_literal(notebook))
    values: dict[str, str] = _yaml(parameter_file) if parameter_file else {}
    names = [name for name, _ in given]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"parameter {listing(sorted(set(twice)))} more than once", "each parameter once", "remove one of them")
    values |= dict(given)
    unknown = [name for name in values if name not in declared]
    if unknown:
        raise InputError(f"parameter {listing(unknown)}", "one of " + ", ".join(declared), "correct the name")
    typed: dict[str, str | int] = {}
    for name, text in values.items():
        if "\0" in text or not encodable(text):
            raise InputError(f"{quote(text)} for parameter {name}", "text without NUL and half characters", "correct it")
        if not text.strip() and name in (*INPUTS, "incumbent"):
            raise InputError(
                f"a blank {name}", "a value", "name it, or leave the parameter out for the bundled default; is a variable unset?"
            )
        whole = declared[name]["inferred_type_name"] == "int"
        if whole and not (text.isascii() and text.lstrip("-").isdigit() and len(text) <= 18):
            raise InputError(f"{quote(text)} for parameter {name}", "a whole number", "correct it")
        typed[name] = int(text) if whole else text
    return typed


def _yaml(path: Path) -> dict[str, str]:
    """A flat YAML mapping whose values stay the text that the file shows: 007 is 007. Nothing is constructed from it."""
    import yaml

    try:
        with opened(path) as stream:
            text = stream.read(_LARGEST_YAML + 1)
        if len(text) > _LARGEST_YAML:
            raise InputError("more than a megabyte", "lines of name: value", "check that this is the right file", file=path)
        root = yaml.compose(text.decode("utf-8-sig"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"no readable YAML ({plain(reason)})", "lines of name: value", "correct the file", file=path) from None
    pairs = root.value if isinstance(root, yaml.MappingNode) else None
    tags = {_YAML + kind for kind in ("str", "int", "float", "bool", "timestamp", "null")}
    if pairs is None or not all(isinstance(node, yaml.ScalarNode) and node.tag in tags for pair in pairs for node in pair):
        raise InputError("YAML of another shape", "lines of name: value, one text or number each", "correct the file", file=path)
    values: dict[str, str] = {}
    for key, value in pairs:
        row = key.start_mark.line + 1
        if key.value in values or value.tag.endswith(":null"):
            found = f"{quote(key.value)} twice" if key.value in values else f"no value for {quote(key.value)}"
            raise InputError(found, "each name once, with a value", "correct the file", file=path, row=row)
        values[key.value] = value.value
    return values


def encodable(text: str) -> bool:
    """Whether a text can be written as UTF-8; a command line may hold bytes that are no characters."""
    return not any("\ud800" <= ch <= "\udfff" for ch in text)


def _clear(output: Path) -> None:
    """Remove what earlier runs left, ``decision.json`` first."""
    try:
        for name in reversed(FILES):
            (output / name).unlink(missing_ok=True)
        for scratch in [path for pattern in REMAINS for path in output.glob(pattern)]:
            if scratch.is_dir():
                shutil.rmtree(scratch, ignore_errors=True)  # its kernel may be about to go; the next run tries again
            else:
                scratch.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{error.filename} in the way ({error.strerror})", "a folder of an earlier run", "choose another folder for -o"
        ) from None


def _inputs(parameters: Mapping[str, str | int]) -> dict[str, dict[str, str]]:
    """The digest of every file of the user's that the run reads, under the parameter that names it."""
    given = {name: str(parameters[name]) for name in INPUTS if parameters.get(name)}
    return {
        name: {str(file): _sha256(file) for file in (files_of(path) if name == "campaign" else [Path(path)])}
        for name, path in given.items()
    }


def _stamps(parameters: Mapping[str, str | int], inputs: Mapping[str, Mapping[str, str]]) -> list[tuple[int, ...]]:
    """What the file system says of every input: one that changed and changed back, or came and went, leaves another time."""
    campaign = str(parameters.get("campaign", ""))
    folders = [place for place, _, _ in os.walk(campaign) if not re.search(r"(^|[/\\])\.", place.removeprefix(campaign))]  # of a file, none
    places = [Path(place) for place in (*(file for entry in inputs.values() for file in entry), *folders)]
    stamps = [found for place in places for found in (place.stat(), place.lstat())]
    return [(stamp.st_ino, stamp.st_size, stamp.st_mtime_ns, stamp.st_ctime_ns) for stamp in stamps]


def _literal(path: Path) -> str:
    """A path for papermill, which fills in what stands between braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _sha256(path: Path) -> str:
    try:
        with opened(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"no readable file ({reason})", "an input file", "check the path, from the folder in which it was given", file=path
        ) from None


def _execute(notebook: Path, target: Path, parameters: Mapping[str, str | int]) -> str:
    """The executed notebook; a refusal inside it is raised here as itself, without its traceback."""
    import papermill
    from papermill.exceptions import PapermillExecutionError

    print(f"running {notebook.name}", file=sys.stderr)
    profile = target.parent / "ipython" / "profile_default"  # no start-up file of the user's, and no chatter of the kernel's
    profile.mkdir(parents=True)
    (profile / "ipython_kernel_config.py").write_text(_KERNEL.format(runner=os.getpid()))
    ours = {name: str(profile.parent) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR")}  # a run leaves nothing elsewhere
    before, temporary = {name: os.environ.get(name) for name in ours}, tempfile.tempdir
    os.environ.update(ours)
    tempfile.tempdir = ours["TMPDIR"]  # the kernel's connection file, its key in it
    threading.Thread(target=importlib.import_module, args=("nbconvert",), daemon=True).start()  # while the kernel works
    try:
        papermill.execute_notebook(
            _literal(notebook), _literal(target), parameters=dict(parameters), progress_bar=sys.stderr.isatty(), log_output=False,
            request_save_on_cell_execute=False,  # twice a cell; the run is kept whole or not at all
        )  # fmt: skip
    except PapermillExecutionError as failure:
        kind = getattr(errors, str(failure.ename), None)
        if isinstance(kind, type) and issubclass(kind, EvalkitError):
            raise Refusal(str(failure.evalue)) from None
        if failure.ename == "MemoryError":
            raise MemoryError from None
        raise
    except RuntimeError as failure:  # a kernel that is gone
        raise InputError(
            f"a run that broke off ({plain(str(failure))})", "a kernel that lives to the end", "is there room enough, in memory and on the disk? run it again"
        ) from None
    finally:
        tempfile.tempdir = temporary
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value
    return target.read_text("utf-8")


class Refusal(EvalkitError):
    """A refusal that a notebook made; its sentence is complete already."""

    def __str__(self) -> str:
        return self.found


def _carried(executed: str, mime: str) -> tuple[str, dict[str, Any]]:
    """The sentence and the record that travel in the notebook's output."""
    found = [
        (output["data"]["text/plain"], output["data"][mime])
        for cell in json.loads(executed)["cells"]
        for output in cell.get("outputs", ())
        if mime in output.get("data", {})
    ]
    if len(found) != 1:
        raise RuntimeError(f"the report notebook carries {len(found)} records of {mime} instead of one")
    text, record = found[0]
    return "".join(text), record


def _csv(record: Mapping[str, Any]) -> str:
    return csv_text([record["header"], *([*row[:-1], _commentary(row[-1])] for row in record["rows"])])


def _word(record: Mapping[str, Any]) -> str:
    return str(record["labels"]["verdict"] if record["kind"] == "release" else record["verdict"])


def _counts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    if record["kind"] == "release":
        rows = sorted(record["candidates"].items(), key=lambda item: item[1]["place"] or 10**9)
        return [
            (
                name,
                f"{c['passed']} of {c['planned']} cells passed, key {', '.join(c['key']) if c['key'] else 'none'}, {c['observed']} of {c['planned']} observed"
                + "".join(f", {n} {word} counted as fail by the rule" for word, n in c["counted_as_fail"].items()),
            )
            for name, c in rows
        ]
    names = (record["baseline"], record["candidate"])
    return [
        (
            rate.replace("_", " "),
            "; ".join(f"{plain(n)} {_rate(value)}" for n, value in zip(names, record[rate], strict=True)),
        )
        for rate in ("observed", "standardised", "equal_weights")
    ]


def _rate(value: str | None) -> str:
    if value is None:
        return "unavailable"
    return f"{value} = {percent(Fraction(value))}" if len(value) < 100 else f"a fraction of {len(value)} digits"


def _page(executed: str, title: str) -> str:
    """One self-contained page, code hidden."""
    from .page import page

    return page(executed, title)
