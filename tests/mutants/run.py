"""Mutation testing of the core: one small change at a time, and some test must fail. ``make mutants``, or

    python tests/mutants/run.py [--again] [MODULE ...]

The mutants are those of cosmic-ray and three of our own: a statement or an item of a tuple taken away, ``in`` turned round. They run
in a copy of the repository, each in a fork of one process that has imported the libraries already: a second instead of five. A
survivor must stand in ``SURVIVORS.md`` with the reason that it is equivalent; any other makes the status 1. Results are kept in
``.venv/mutants``, so a second run does what is new, and with ``--again`` also what survived.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib
import json
import os
import py_compile
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / ".venv" / "mutants"
LISTED = Path(__file__).with_name("SURVIVORS.md")
# Per module the tests that know it best, then those that notice on the way: the second row runs where the first sees nothing.
TESTS: dict[str, tuple[str, str]] = {
    "reductions": ("reductions mutants", "decide bounds properties"),
    "reweighting": ("reweighting mutants", "bounds broken properties evidence"),
    "decide": ("decide mutants", "adversary bounds broken properties"),
    "_exact": ("mutants exact", "broken records reweighting sources"),
    "bounds": ("mutants bounds", "adversary evidence properties"),
    "records": ("records mutants", "broken properties report"),
    "campaign": ("campaign mutants", "broken decide records table sources properties"),
    "counterexample": ("counterexample mutants", ""),
}
# Of the replacements of an operator, those that differ least; the others fail with them.
SWAPS = (
    *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "Pow_Mul", "BitOr_BitAnd", "BitAnd_BitOr"),
    *("Eq_NotEq", "Eq_LtE", "Eq_GtE", "NotEq_Eq", "NotEq_Lt", "NotEq_Gt", "Lt_LtE", "Lt_NotEq", "Lt_GtE", "LtE_Lt", "LtE_Eq", "LtE_Gt"),
    *("Gt_GtE", "Gt_NotEq", "Gt_LtE", "GtE_Gt", "GtE_Eq", "GtE_Lt", "Is_IsNot", "IsNot_Is", "USub_UAdd", "Delete_Not"),
)
OTHERS = (
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue"),
    *("ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer", "RemoveDecorator", "ZeroIterationForLoop"),
)


def of_cosmic_ray(source: str) -> Iterator[str]:
    """The texts that its operators make of a module."""
    from cosmic_ray.ast import Visitor, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    class Places(Visitor):
        def __init__(self, operator: Any) -> None:
            self.operator, self.found = operator, 0

        def visit(self, node: Any) -> Any:
            self.found += len(list(self.operator.mutation_positions(node)))
            return node

    for name in operator_names():
        if name.rpartition("Operator_")[2] in SWAPS or name.removeprefix("core/") in OTHERS:
            operator = get_operator(name)()
            places = Places(operator)
            places.walk(get_ast(source))
            for occurrence in range(places.found):
                yield mutate_code(source, operator, occurrence) or source


def of_ours(source: str) -> Iterator[str]:
    """A statement taken away, an item of a tuple of two or more taken away, ``in`` turned round."""
    raw = source.encode()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def put(new: bytes, first: int, last: int) -> str:
        return (raw[:first] + new + raw[last:]).decode()

    def start(node: Any) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: Any) -> int:
        return starts[node.end_lineno - 1] + node.end_col_offset

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise | ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            yield put(b"pass", start(node), end(node))
        elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
            for item, after in zip(node.elts, node.elts[1:], strict=False):
                yield put(b"", start(item), start(after))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            between = slice(end(node.left), start(node.comparators[0]))
            words = (b" in ", b" not in ") if isinstance(node.ops[0], ast.In) else (b" not in ", b" in ")
            yield put(raw[between].replace(*words), between.start, between.stop)


def meaning(source: str) -> str:
    """The syntax tree without what nobody reads at run time: annotations and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for note in ("annotation", "returns"):
            if getattr(node, note, None) is not None:
                setattr(node, note, ast.Constant(0))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(0)
    return ast.dump(tree)


def mutants(source: str) -> Iterator[str]:
    """Every mutant that compiles and differs, once."""
    seen = {meaning(source)}
    for text in (*of_ours(source), *of_cosmic_ray(source)):
        with contextlib.suppress(SyntaxError):
            compile(text, "mutant", "exec")
            if (meant := meaning(text)) not in seen:
                seen.add(meant)
                yield text


def change(source: str, text: str) -> tuple[int, str]:
    """The number of the first line that differs, and what it became, as ``SURVIVORS.md`` lists it."""
    pairs = enumerate(zip(source.splitlines(), text.splitlines(), strict=False), 1)
    number, (old, new) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    same = _alike(old, new)
    after = min(_alike(old[::-1], new[::-1]), len(old) - same, len(new) - same)

    def short(line: str) -> str:
        first, last = max(0, same - 40), len(line) - max(0, after - 30)
        return f"`{'…' * (first > 0)}{line[first:last].strip()}{'…' * (last < len(line))}`"

    return number, f"{short(old)} → {short(new)}"


def _alike(one: str, two: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def survives(copy: Path, tests: list[str], timeout: float, *, first: bool = False) -> bool:
    """Whether the tests pass, in a fork; one that never ends is killed, and so is the mutant."""
    child = os.fork()
    if not child:
        status = 99
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30,) * 2)  # a mutant may ask for a grid of 10^12 cells
            os.chdir(copy)
            output = os.open(copy / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.dont_write_bytecode = not first
            status = _pytest(tests)
        finally:
            os._exit(status)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _pytest(tests: list[str]) -> int:
    import hypothesis
    import pytest

    few = {"max_examples": 20, "derandomize": True, "deadline": None, "database": None}
    hypothesis.settings.register_profile("mutants", suppress_health_check=list(hypothesis.HealthCheck), **few)
    hypothesis.settings.load_profile("mutants")
    return int(pytest.main(["-x", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "--doctest-modules", "--tb=short", *tests]))


def module_survivors(copy: Path, module: str, *, again: bool) -> int:
    """Try every mutant of a module; say how many were killed, and return how many survivors are not listed."""
    path, kept = copy / "evalkit" / f"{module}.py", RESULTS / f"{module}.json"
    source = path.read_text("utf-8")
    for other in (copy / "evalkit").rglob("*.py"):  # compiled ahead; the module never: a cache hides a mutant of the same length and second
        py_compile.compile(str(other), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    for cache in (copy / "evalkit" / "__pycache__").glob(f"{module}.*"):
        cache.unlink()
    rows, started = [], time.monotonic()
    for words, more in zip(TESTS[module], ([str(path)], []), strict=True):
        tests = [f"tests/test_{word}.py" for word in words.split()] + more
        before = time.monotonic()
        if tests and not survives(copy, tests, 900, first=True):
            raise SystemExit(f"the tests of {module} fail without a mutant:\n{(copy / 'output.txt').read_text()[-3000:]}")
        rows.append((tests, 20 + 6 * (time.monotonic() - before)))
    kept.touch()
    known = dict(map(json.loads, kept.read_text("utf-8").splitlines()))
    survivors: list[tuple[int, str]] = []
    alike: Counter[str] = Counter()
    n = 0
    for n, text in enumerate(mutants(source), 1):  # noqa: B007
        diff = "".join(line for line in difflib.unified_diff(source.splitlines(True), text.splitlines(True), n=0) if line[:2] != "@@")
        alike[diff] += 1  # the same change of another line that says the same is another mutant
        key = diff if alike[diff] == 1 else f"{diff}#{alike[diff]}"
        if key not in known or (again and known[key]):
            path.write_text(text, "utf-8")
            known[key] = all(survives(copy, tests, limit) for tests, limit in rows if tests)
            path.write_text(source, "utf-8")
            with kept.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps([key, known[key]]) + "\n")
        if known[key]:
            survivors.append(change(source, text))
    listed = LISTED.read_text("utf-8").partition(f"## {module}\n")[2].partition("\n## ")[0]
    new = [(number, what) for number, what in survivors if f"- {what}" not in listed]
    for number, what in new:
        print(f"evalkit/{module}.py:{number} {what}")
    gone = [
        line for line in listed.splitlines() if line.startswith("- ") and not any(line.startswith(f"- {what}") for _, what in survivors)
    ]
    print("\n".join(f"listed, and killed or gone: {line}" for line in gone), end="\n" * bool(gone))
    killed = n - len(survivors)
    print(f"{module}: {n} mutants, {killed} killed ({100 * killed / n:.1f} %), {len(survivors) - len(new)} survivors listed as equivalent, "
          f"{len(new)} not; {time.monotonic() - started:.0f} s", flush=True)  # fmt: skip
    return len(new)


def main(arguments: list[str]) -> int:
    """The status says whether a mutant survives that is not listed."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    copy = Path(tempfile.mkdtemp(prefix="mutants-")) / "main"
    left = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", ".hypothesis", "screenshots", "report", "report-mix", "class")
    shutil.copytree(ROOT, copy, ignore=left)
    sys.path.insert(0, str(copy))
    os.environ |= {"PYTHONPATH": str(copy), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1"}
    for library in ("numpy", "polars", "narwhals", "scipy.stats", "hypothesis.strategies", "pytest", "zstandard"):
        importlib.import_module(library)
    try:
        modules = [word for word in arguments if word != "--again"] or list(TESTS)
        return int(sum(module_survivors(copy, module, again="--again" in arguments) for module in modules) > 0)
    finally:
        shutil.rmtree(copy.parent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
