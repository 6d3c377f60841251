"""What is fuzzed: the seeds, how they are changed, what reads them, and what must hold of a result."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
MADE = FIXTURES / "sources"
MANY, SOME = 1_000_000, 100_000
Read = Callable[[bytes, int], object]  # an input, and a number made from it by which options are chosen


class Target(NamedTuple):
    """The modules of the kit are imported by ``make`` only, so that their branches are seen."""

    seeds: tuple[str | bytes, ...]  # globs below fixtures/, or the content itself
    change: str  # a function of mutate.py
    make: Callable[[], Read]
    runs: int = SOME


def _campaign(names: tuple[str, ...], *options: dict[str, Any], marks: tuple[bytes, ...] = ()) -> Read:
    """``read_campaign`` on these bytes, which stand for the first of the files, and what must hold of its campaign.

    With ``marks``, the options whose mark the bytes hold.
    """
    from evalkit import sources
    from evalkit.decide import decide
    from evalkit.errors import EvalkitError, InputError
    from evalkit.records import read_rule
    from evalkit.sources import table
    from evalkit.tabulate import campaign_csv

    content, rule = sources._content, read_rule()
    paths = [MADE / name for name in names]
    given: dict[Path, bytes] = {}
    sources._content = lambda path: given.get(path) or content(path)
    sources.files_of = lambda paths: list(paths) if isinstance(paths, list) else [paths]

    def read(data: bytes, number: int) -> object:
        given[paths[0]] = data
        fitting = [each for mark, each in zip(marks, options, strict=True) if mark in data] if marks else options
        made = sources.read_campaign(paths if len(paths) > 1 and number % 3 == 0 else paths[0], **fitting[number // 3 % len(fitting)])
        with suppress(InputError):  # a third of a second has no decimal
            again = table.campaign(campaign_csv(made).encode())
            if again.digest != made.digest:
                raise AssertionError(f"another campaign after it was written and read again:\n{made!r}\n{again!r}")
        if len(made.candidates) > 1:
            with suppress(EvalkitError):
                decide(made, rule, incumbent=made.candidates[0])
        return made

    return read


def _tables() -> Read:
    marks = {
        b"outcome": ({}, {}, {}, {"repetition": "order"}, {"repetition": "file"},
                     {"columns": "candidate== x; instance=instance; repetition=repetition; outcome=outcome; blank=absent"}),
        b"reward": ({"columns": "candidate=model; instance=task; repetition=seed; outcome=reward; passes=>= 0.5"},
                    {"columns": "instance=task; repetition=order; outcome=reward", "candidate_names": "alpha.csv=alpha; beta.csv=beta"}),
        b"run 1": ({"columns": "candidate=model; instance=task; wide=run 1, run 2; passes=T; fails=F; blank=absent"},),
        b"Run": ({"columns": "candidate=Model name; instance=Task #; repetition=Run; outcome=Passed?; passes=T; fails=F; blank=ungraded"},),
        b"": ({},),
    }  # fmt: skip
    pairs = [(mark, each) for mark, several in marks.items() for each in several]
    names = ("tables/per_candidate/alpha.csv", "tables/per_candidate/beta.csv")
    return _campaign(names, *(each for _, each in pairs), marks=tuple(mark for mark, _ in pairs))


def _quick() -> Read:
    """The fast reader of large tables, on small ones: it says what the strict reader says, or nothing."""
    from evalkit.errors import EvalkitError
    from evalkit.sources import table

    def read(data: bytes, _number: int) -> object:
        found = []
        for large in (-1, len(data)):
            table._LARGE = large
            try:
                found.append(table.campaign(data).digest)
            except EvalkitError as error:
                found.append(str(error))
        if found[0] != found[1]:
            raise AssertionError(f"{found[0]} by the fast reader, {found[1]} by the strict one")
        return found

    return read


def _parquet() -> Read:
    """A table as Parquet, its bytes changed; and a table whose cells are changed, as Parquet, beside its CSV."""
    import polars

    from evalkit.sources import frame, table

    def read(data: bytes, number: int) -> object:
        if data[:4] != b"PAR1":
            parsed = table._parse(data, table.CELL)
            stream = io.BytesIO()
            polars.DataFrame(parsed.columns).write_parquet(stream)
            one, two = table.campaign(stream.getvalue()), table.campaign(data)
            if one.digest != two.digest:
                raise AssertionError("another campaign from Parquet than from CSV")
            return one
        return frame.parquet(data, table.Columns.canonical) if number % 2 else table.campaign(data)

    return read


def _requests() -> Read:
    """Production rows or counts to a tally, which is written and read again."""
    from evalkit import tabulate
    from evalkit.sources import table

    path = Path(tempfile.mkdtemp(prefix="fuzz-")) / "rows"
    made = path.with_suffix(".csv")
    tabulate.write_whole = lambda target, text: target.write_text(text, "utf-8")  # a sync takes longer than all else
    ready = "period=period; group=group; passed=passed; assessed=assessed; requested=requested"
    marks = {
        b"verdict": ("period=month; group=kind; outcome=verdict; request=id; passes=ok; fails=not ok", "period== May; group=kind; outcome=verdict; passes=ok; fails=not ok"),
        b"assessed": ("", ready),
        b"": ("",),
    }  # fmt: skip

    def read(data: bytes, number: int) -> object:
        path.write_bytes(data)
        fitting = next(several for mark, several in marks.items() if mark in data)
        tabulate.tabulate_tally(path, made, columns=fitting[number % len(fitting)])
        return table.tallies(made.read_bytes())

    return read


def _of_bytes(name: str) -> Read:
    from evalkit.sources import table

    function = getattr(table, name)
    return lambda data, _number: function(data)


def _file(read: Callable[[Path], object], name: str = "input.json") -> Read:
    """A reader that opens its file itself."""
    path = Path(tempfile.mkdtemp(prefix="fuzz-")) / name

    def written(data: bytes, _number: int) -> object:
        path.write_bytes(data)
        return read(path)

    return written


def _packed() -> Read:
    from evalkit import sources

    sources._MOST_BYTES = 1_000_000  # so that a bomb of a few bytes is one
    return _file(sources.read_campaign, "input.csv.gz")


def _rule() -> Read:
    from evalkit import read_campaign
    from evalkit.bounds import decide_by_bounds
    from evalkit.records import canonical, decision_record, digest_of, read_rule, rule_as_json
    from evalkit.uncertainty import with_margin

    campaigns = [read_campaign(FIXTURES / name) for name in ("claude_merge.csv", "guarded.csv", "one_timeout.csv")]
    beside = Path(tempfile.mkdtemp(prefix="fuzz-")) / "again.json"

    def read(path: Path) -> object:
        rule = read_rule(path)
        beside.write_text(canonical({key: value for key, value in rule_as_json(rule).items() if value not in (None, "")}), "utf-8")
        if digest_of(read_rule(beside)) != digest_of(rule):
            raise AssertionError("another rule after it was written and read again")
        campaign = campaigns[len(rule.purpose) % 3]
        decision = decide_by_bounds(campaign, rule, incumbent=campaign.candidates[0], picker=(rule.reduction,), sign_offs={})
        return canonical(decision_record(campaign, rule, with_margin(campaign, rule, decision)))

    return _file(read)


def _reference() -> Read:
    from evalkit import read_reference, read_tallies
    from evalkit.records import canonical, digest_of, mix_record, reference_text
    from evalkit.reweighting import compare

    tallies = read_tallies()
    beside = Path(tempfile.mkdtemp(prefix="fuzz-")) / "again.json"

    def read(path: Path) -> object:
        reference = read_reference(path)
        beside.write_text(reference_text(reference), "utf-8")
        if digest_of(read_reference(beside)) != digest_of(reference):
            raise AssertionError("another reference after it was written and read again")
        return canonical(mix_record(tallies, reference, compare(tallies["baseline"], tallies["candidate"], reference)))

    return _file(read)


def _grouping() -> Read:
    from evalkit import read_tallies
    from evalkit.tabulate import regroup

    tallies = read_tallies()
    return _file(lambda path: regroup(tallies, path))


def _finished() -> Read:
    """The folder of a finished run, its decision or its provenance changed."""
    from evalkit import report
    from evalkit.records import canonical

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for name in report.FILES:
        (folder / name).write_text("{}")
    decision = canonical(report.mix().record).encode()
    os.chdir(folder)

    def read(data: bytes, _number: int) -> object:
        mine = b'"parameters"' in data
        if mine and (b"/" in data or b".." in data):
            return None  # it may not walk through this machine
        (folder / "provenance.json").write_bytes(data if mine else PROVENANCE)
        (folder / "decision.json").write_bytes(decision if mine else data)
        return report.verify(folder)

    return read


def _parameters() -> Read:
    """``report KIND -p NAME VALUE ...``, one pair a line, as far as a kernel would be started; then what the notebook calls."""
    import papermill

    from evalkit import __main__, report
    from evalkit.errors import InputError

    os.chdir(tempfile.mkdtemp(prefix="fuzz-"))
    for name in ("claude_merge.csv", "guarded.csv", "traffic_mix.csv", "guarded_rule.json", "support_mix_fixture_v1.json"):
        Path(name).write_bytes((FIXTURES / name).read_bytes())
    declared = {kind: papermill.inspect_notebook(str(FIXTURES.parent / f"notebooks/report_{kind}.ipynb")) for kind in report.KINDS}
    papermill.inspect_notebook = lambda kind: declared[kind]  # it takes a while, and never differs
    use = {"release": report.release, "mix": report.mix}

    def run(kind: str, given: list[tuple[str, str]], _output: Path, *, parameter_file: Path | None = None) -> int:
        typed = report._parameters(Path(kind), given, parameter_file)
        report._inputs(typed)
        use[kind](**{name: value for name, value in typed.items() if name in use[kind].__kwdefaults__})
        return 0

    __main__.run = run
    sys.stderr = io.StringIO()

    def read(data: bytes, _number: int) -> object:
        sys.stderr.seek(0)
        pairs = [line.partition("=")[::2] for line in data.decode("utf-8", "surrogateescape").split("\n")]
        if any("/" in value or ".." in value for _, value in pairs):
            return None
        words = [word for name, value in pairs for word in ("-p", name, value)]
        status = __main__.main(["report", "mix" if b"baseline" in data else "release", *words, "-o", "out"])
        if status == report.REFUSED:
            raise InputError("what the sentence on standard error says")
        return status

    return read


def _yaml() -> Read:
    from evalkit import report

    return _file(report._yaml, "parameters.yaml")


def _harness(names: str, *options: dict[str, Any]) -> Callable[[], Read]:
    return lambda: _campaign(tuple(sorted(path.relative_to(MADE).as_posix() for path in MADE.glob(names))), *(options or ({},)))


_SCORED = ({"scorer": "match"}, {"scorer": "match"}, {}, {"scorer": "closeness", "passes": ">= 0.25"}, {"scorer": "match", "group": "group"},
           {"scorer": "match", "accept": "partial;invalidated;scorer;dataset"}, {"scorer": "match", "task": "made", "repetition": "file"})  # fmt: skip
_LM_EVAL = (
    {"scorer": "exact_match,first"},
    {"scorer": "exact_match,first", "group": "band"},
    {},
    {"scorer": "exact_match,first", "repetition": "order"},
)
PROVENANCE = json.dumps(
    {"kind": "mix", "parameters": {"baseline": "baseline", "candidate": "candidate"}, "inputs": {}, "outputs": {}}
).encode()
_RELEASE = (
    b"campaign=claude_merge.csv\nincumbent=BASELINE\npicker=cell_mean, at_least(2)\nsign_offs=owner=yes; safety=no\n"
    b"candidate_names=CLAUDE=A; MERGE=B"
)
_RELEASE_2 = (
    b"campaign=guarded.csv\nincumbent=BASELINE\nrule=guarded_rule.json\nrepetition=order\n"
    b"columns=candidate=candidate; instance=instance; repetition=repetition; outcome=outcome; passes=pass; fails=fail; group=group"
)
_MIX = b"tallies=traffic_mix.csv\nbaseline=baseline\ncandidate=candidate\nreference=support_mix_fixture_v1.json\nblocking_groups=routine; complex"
TARGETS = {
    "tables": Target(("*.csv", "broken/*.csv", "sources/tables/**/*"), "of_table", _tables, MANY),
    "tallies": Target(("*mix*.csv", "un*.csv", "delayed_grading.csv", "break_even.csv", "complex_split.csv", "broken/tally*.csv"), "of_table", lambda: _of_bytes("tallies"), MANY),
    "inspect-archive": Target(("sources/inspect/*.eval",), "of_archive", _harness("inspect/*", *_SCORED), MANY),
    "inspect-json": Target(("sources/inspect/*.json",), "of_json", _harness("inspect/*", *_SCORED), MANY),
    "promptfoo": Target(("sources/promptfoo/*",), "of_json", _harness("promptfoo/results.json", {}, {"group": "group"}, {"repetition": "file"}), MANY),
    "rule": Target(("*rule.json", "broken/rule*.json"), "of_json", _rule, MANY),
    "reference": Target(("support_mix_fixture_v1.json", "broken/reference*.json"), "of_json", _reference, MANY),
    "inventory": Target(("broken/inventory*.csv",), "of_table", lambda: _of_bytes("inventory")),
    "lm-eval": Target(("sources/lm_eval/*/samples*",), "of_json", _harness("lm_eval/*/samples*", *_LM_EVAL)),
    "tau-bench": Target(("sources/tau_bench/*", "broken/tau*"), "of_json", _harness("tau_bench/*")),
    "tau2-bench": Target(("sources/tau2_bench/**/*.json",), "of_json", _harness("tau2_bench/alpha.json", {}, {"accept": "partial"})),
    "terminal-bench": Target(("sources/terminal_bench/**/*.json",), "of_json", _harness("terminal_bench/alpha/*/results.json", {}, {"accept": "partial"})),
    "harbor": Target(("sources/harbor/job/*/result.json",), "of_json", _harness("harbor/job/*/result.json")),
    "swe-bench": Target(("sources/swe_bench/*", "sources/swe_bench_leaderboard.json"), "of_json", _harness("swe_bench/*")),
    "presets": Target(("sources/*.jsonl", "sources/deepeval/*", "sources/openai_evals/*"), "of_json",
                      _harness("openai_evals/*", {}, {"scorer": "match"}, {"group": "group"}, {"passes": ">= 0.5", "scorer": "match"})),
    "langsmith": Target(("sources/langsmith/*",), "of_table", _harness("langsmith/*", {}, {"passes": ">= 0.5"})),
    "quick": Target(("*.csv", "broken/*.csv"), "of_table", _quick),
    "parquet": Target(("claude_merge.csv", "guarded.csv", "one_timeout.csv"), "of_table", _parquet),
    "requests": Target(("sources/tables/requests.csv", "sources/tables/counts.csv", "traffic_mix.csv"), "of_table", _requests),
    "packed": Target(("claude_merge.csv", "broken/*.gz"), "of_packed", _packed),
    "grouping": Target((b'{"grouping_rule": "g", "groups": {"routine": "all", "complex": "all"}, "regroups": "task_type_v1"}',), "of_json", _grouping),
    "finished": Target((PROVENANCE, b'{"kind": "mix", "verdict": "compared", "tallies": {"digest": "0"}}'), "of_json", _finished),
    "parameters": Target((_RELEASE, _RELEASE_2, _MIX), "of_text", _parameters),
    "yaml": Target((_MIX.replace(b"=", b": "), b"a: 007\nb: 'x'\n", b"a: &x [1]\nb: *x\n", b"!!python/object:os.system {a: b}"), "of_text", _yaml),
}  # fmt: skip
