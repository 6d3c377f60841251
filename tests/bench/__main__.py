"""Run rows of the benchmark and write what they found: ``python -m tests.bench [ROW ...] [--long] [--small]``.

Whole runs are kept in ``results.json`` beside this file; ``docs/bench.md``, ``docs/bench.svg`` and the table in the README are made
from it, so that one row can be measured again alone. ``--small`` prints what it finds on small data and writes nothing.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from .measure import OURS, ROOT, Line, shown
from .rows import LONG, ROWS

KEPT = Path(__file__).with_name("results.json")
FELT = (4, 5, 9, 11)  # the rows that the README shows
HEAD = "| row | work | contender | median | evalkit takes | goal | met |\n|---|---|---|---|---|---|---|"


def machine() -> str:
    """What the numbers were measured on; no name of a host."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*: (.*)$", info.read_text(), re.MULTILINE) if info.exists() else None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "polars", "pandas", "duckdb", "scipy", "inspect-ai", "pyspark", "dask")
    )
    processor = f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), {memory:.0f} GiB of memory"
    return f"{processor}, {platform.system()}, Python {platform.python_version()}, {packages}"


def table(lines: Sequence[Line]) -> str:
    """One Markdown table."""
    rows = []
    for line in lines:
        ratio = "" if line.ratio is None else f"{shown(line.ratio)} times as much"
        rows.append(
            f"| {line.row} | {line.work} | {line.contender} | {shown(line.value, line.unit)} | {ratio} | {line.goal} | {line.met} |"
        )
    return "\n".join([HEAD, *rows])


def picture(lines: Sequence[Line], path: Path) -> None:
    """A bar per goal: what the kit takes of what the goal allows, on a logarithmic axis; a missed goal is hatched."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    aimed = [line for line in lines if line.share is not None]
    with mpl.rc_context({"svg.hashsalt": "bench", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9.5, 0.32 * len(aimed) + 1.3), layout="constrained")
        axes = figure.add_subplot()
        for place, line in enumerate(aimed):
            missed = line.share > 1
            axes.barh(place, line.share, left=0, color="white" if missed else "0.75", edgecolor="black", hatch="////" if missed else "")
            axes.annotate(shown(line.share), (line.share, place), (4, 0), textcoords="offset points", va="center")
        against = [
            line.goal if line.contender == OURS else f"{line.goal} {line.contender}".replace("faster", "faster than", 1) for line in aimed
        ]
        against = [text.replace("times ", "times that of ", 1) if text.startswith("at most") else text for text in against]
        labels = [f"{line.row}  {_short(line.work)}: {text}" for line, text in zip(aimed, against, strict=True)]
        axes.set(
            yticks=range(len(aimed)),
            yticklabels=labels,
            xscale="log",
            xlabel="share of what the goal allows (1 is the goal; hatched: missed)",
        )
        axes.axvline(1, color="black", linewidth=1.5)
        axes.invert_yaxis()
        axes.margins(x=0.15, y=0.01)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, metadata={"Date": None})
    path.write_text(re.sub(r"[ \t]+$", "", path.read_text("utf-8"), flags=re.MULTILINE), "utf-8")


def _short(work: str) -> str:
    return work.split(":")[0].split(" of 20 candidates")[0] + (work.rpartition("x 5, ranked")[2] if "ranked" in work else "")


def write(lines: Sequence[Line], where: str) -> None:
    """The page, the picture and the README's table."""
    missed = sum(line.share is not None and line.share > 1 for line in lines)
    aimed = sum(line.share is not None for line in lines)
    page = f"""# The kit beside what one would use instead

Made by `make bench` and `make bench-long` (rows {", ".join(map(str, LONG))}), which run for a while; the numbers are of this machine: {where}.

Medians of several rounds, every contender once a round, in the same order. All contenders must find the same numbers, or the
benchmark ends. Making the data, building objects and importing modules are not timed, for us or for them. Tables and files are
read in a fresh process each, whose peak memory is the operating system's. {aimed - missed} of {aimed} goals are met. A goal that
is missed stays.

![A bar for each goal, how much of what it allows the kit takes; the table below says the same](bench.svg)

{table(lines)}
"""
    (ROOT / "docs" / "bench.md").write_text(page, "utf-8")
    picture(lines, ROOT / "docs" / "bench.svg")
    readme = ROOT / "README.md"
    block = f"<!-- bench -->\n{felt(lines)}\n\nMedians on {where}. [All rows, goals and a picture](docs/bench.md).\n<!-- /bench -->"
    text = readme.read_text("utf-8")
    readme.write_text(re.sub(r"<!-- bench -->.*<!-- /bench -->", lambda _: block, text, flags=re.DOTALL), "utf-8")


def felt(lines: Sequence[Line]) -> str:
    """What users feel, a line per work: time, and peak memory where it was measured."""
    amounts: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        work = line.work.removesuffix(", peak memory")
        if line.row in FELT and "after imports" not in work:
            amounts.setdefault(work, {}).setdefault(line.contender, []).append(shown(line.value, line.unit))
    rows = []
    for work, by_name in amounts.items():
        others = "; ".join(f"{name}: {', '.join(found)}" for name, found in by_name.items() if name != OURS)
        rows.append(f"| {work} | {', '.join(by_name[OURS])} | {others} |")
    return "\n".join(["| work | evalkit | beside it |", "|---|---|---|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="time the kit beside what one would use instead")
    parser.add_argument("rows", nargs="*", type=int, help="rows to run; none runs all but the long ones")
    parser.add_argument("--long", action="store_true", help=f"rows {', '.join(map(str, LONG))}, which take long")
    parser.add_argument("--small", action="store_true", help="small data, printed and not kept")
    given = parser.parse_args()
    wanted = set(given.rows) or ({*LONG} if given.long else {row for rows in ROWS for row in rows} - {*LONG})
    compileall.compile_dir(ROOT / "evalkit", quiet=1)  # as an installation does, even where PYTHONDONTWRITEBYTECODE is set
    found: list[Line] = []
    for rows, run in ROWS.items():
        if wanted & {*rows}:
            lines = [line for line in run(given.small) if line.row in wanted]
            found += lines
            print(table(lines), flush=True)
    if given.small:
        return
    where, kept = machine(), json.loads(KEPT.read_text()) if KEPT.exists() else {}
    old = [Line(**line) for line in kept.get("lines", ())] if kept.get("machine") == where else []  # no mixture of machines
    every = sorted([*found, *(line for line in old if line.row not in wanted)], key=lambda line: line.row)
    KEPT.write_text(json.dumps({"machine": where, "lines": [asdict(line) for line in every]}, indent=1) + "\n")
    write(every, where)


if __name__ == "__main__":
    main()
