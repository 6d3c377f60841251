"""The command line: run a report, verify one, make a reference."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from .errors import EvalkitError, InputError, _escaped, plain, quote
from .records import reference_text, write_whole
from .report import KINDS, REFUSED, encodable, markdown, run, step_summary, verify
from .reweighting import MISSING_GROUP_POLICY, Reference, observed_mix
from .sources import read_tallies
from .tabulate import tabulate, tabulate_tally

CAMPAIGN_OPTIONS = ("candidate_names", "scorer", "passes", "group", "task", "repetition", "accept", "keep")
TALLY_OPTIONS = ("grouping", "grouping_rule", "grader_version", "case_set")
EPILOG = "Status of report release: 0 promote, 10 keep the incumbent, 11 undecided, 12 input refused. report mix: 0 compared, 11 unavailable, 12 refused."


class _Parser(argparse.ArgumentParser):
    """Usage errors are refusals too, and end with the same status."""

    def error(self, message: str) -> object:  # type: ignore[override]
        self.print_usage(sys.stderr)
        raise InputError(message, "a command as the usage above says", f"try {self.prog} --help")


def _parser() -> _Parser:
    parser = _Parser(prog="python -m evalkit", description="Name what you count before you rank.", epilog=EPILOG)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    report = commands.add_parser("report", help="run a report notebook on your own results", epilog=EPILOG)
    report.add_argument("kind", choices=KINDS)
    report.add_argument(
        "-p", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="a parameter of the notebook; text stays text"
    )
    report.add_argument("-f", type=Path, metavar="FILE", help="parameters in a YAML file; -p wins over it")
    report.add_argument("-o", type=Path, required=True, metavar="DIR", help="folder for report.html, decision.json and the rest")
    check = commands.add_parser("verify", help="recompute a decision from its inputs and name every difference")
    check.add_argument("directory", type=Path)
    table = commands.add_parser("tabulate", help="write the canonical table of any supported input")
    table.add_argument("paths", nargs="+", metavar="PATH")
    table.add_argument("-o", required=True, metavar="FILE.csv")
    table.add_argument("--tally", action="store_true", help="production rows or counts in, a tally of periods and groups out")
    for name in (*CAMPAIGN_OPTIONS, *TALLY_OPTIONS):
        table.add_argument(f"--{name.replace('_', '-')}", default="", metavar="TEXT")
    table.add_argument("--columns", default="", metavar="TEXT", help="which column says what: candidate=model; instance=task; ...")
    table.add_argument("--inventory", default="", metavar="FILE", help="the declared instances, or the planned requests")
    reference = commands.add_parser("reference", help="write a reference from the observed mix of one period")
    reference.add_argument("--from", dest="tallies", required=True, metavar="TALLIES")
    reference.add_argument("--period", required=True)
    reference.add_argument("--id", required=True)
    reference.add_argument("--purpose", required=True)
    reference.add_argument("--grouping-rule", default="", help="where the tallies do not name it")
    reference.add_argument("--grader-version", default="", help="where the tallies do not name it")
    reference.add_argument("-o", type=Path, metavar="FILE", help="a new file; without it the reference is printed")
    return parser


def _tabulate(options: argparse.Namespace) -> int:
    """The options of the other kind of table are refused, since they would change nothing."""
    unused = [name for name in (CAMPAIGN_OPTIONS if options.tally else TALLY_OPTIONS) if getattr(options, name)]
    if unused or (options.tally and len(options.paths) > 1):
        found = ", ".join(f"--{name.replace('_', '-')}" for name in unused) or f"{len(options.paths)} files"
        raise InputError(
            found, "one file and the options of --tally" if options.tally else "the options of a campaign", "see tabulate --help"
        )
    common = {"columns": options.columns, "inventory": options.inventory}
    if options.tally:
        notes = tabulate_tally(options.paths[0], options.o, **common, **{name: getattr(options, name) for name in TALLY_OPTIONS})
    else:
        given = {name: getattr(options, name) for name in CAMPAIGN_OPTIONS}
        paths = options.paths if len(options.paths) > 1 else options.paths[0]
        notes = tabulate(paths, options.o, **common, **{**given, "repetition": options.repetition or "repetition"})
    print("\n".join([*map(plain, notes), _escaped(options.o)]))
    return 0


def _reference(options: argparse.Namespace) -> int:
    tallies = read_tallies(options.tallies)
    if options.period not in tallies:
        raise InputError(
            f"no period {quote(options.period)}", "one of " + ", ".join(map(plain, tallies)), "name a period", file=options.tallies
        )
    tally = tallies[options.period]
    for name in ("id", "purpose"):
        if not getattr(options, name).strip():
            raise InputError(f"a blank --{name}", "text", "a reference is nothing without it")
    if tally.assessed != tally.requested:
        raise InputError(
            f"{sum(tally.assessed)} of {sum(tally.requested)} requests of {quote(options.period)} assessed",
            "a period in which every request is assessed",
            "choose a complete one; the mix of the assessed requests is not the mix of the traffic",
            file=options.tallies,
        )
    record = Reference(
        options.id,
        options.grouping_rule or tally.bindings.get("grouping_rule", "undeclared"),
        observed_mix(tally),
        options.grader_version or tally.bindings.get("grader_version", "undeclared"),
        options.purpose,
        MISSING_GROUP_POLICY,
    )
    if options.o is None:
        print(reference_text(record), end="")
    elif options.o.exists():
        raise InputError("a file that exists", "a new file, since a reference is declared once", "choose another name", file=options.o)
    else:
        try:
            write_whole(options.o, reference_text(record))
        except OSError as error:
            raise InputError(
                f"no place to write ({error.strerror})", "a folder that exists", "make it, or name another", file=options.o
            ) from None
        print(_escaped(str(options.o)))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a refusal is one sentence on standard error and status 12."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a console that lacks a character shows its escape
            stream.reconfigure(errors="backslashreplace")
    try:
        for word in sys.argv[1:] if arguments is None else arguments:
            if not encodable(word):
                raise InputError(quote(word), "text", "correct the argument; it holds bytes that are no characters")
        options = _parser().parse_args(arguments)
        if options.command == "report":
            return run(options.kind, [(name, value) for name, value in options.p], options.o, parameter_file=options.f)
        if options.command == "reference":
            return _reference(options)
        if options.command == "tabulate":
            return _tabulate(options)
        differences = verify(options.directory)
        print("\n".join(differences) if differences else f"verified: {_escaped(str(options.directory))} recomputes to the same decision")
        return 1 if differences else 0
    except (EvalkitError, MemoryError) as error:
        refusal = error if isinstance(error, EvalkitError) else InputError("more than memory holds", "a smaller input", "split it")
        print(f"refused: {refusal}", file=sys.stderr)
        if arguments is None:
            step_summary(f"## refused\n\n{markdown(str(refusal))}\n")
        return REFUSED


if __name__ == "__main__":
    sys.exit(main())
