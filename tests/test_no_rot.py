"""What would rot unseen: a broken notebook that passes, a dead link, two pins for one package, a command that no longer runs,
a public name without its unit, code that nothing reaches. Each is broken here on purpose, or looked for in the whole repository."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars
import pytest
import test_notebook_health as health
import test_notebooks as template
from packaging.requirements import Requirement

import evalkit
from evalkit import cell_mean, fail_closed, observed_rate, read_campaign, read_reference, read_tallies, report, standardise
from evalkit.__main__ import main
from evalkit.sources import frame
from evalkit.tabulate import campaign_csv

ROOT = Path(__file__).resolve().parent.parent
LONG = "EVALKIT_LONG" in os.environ
LEFT_OUT = {".venv", ".git", "report", "report-mix", "class", "screenshots", ".hypothesis", ".ipynb_checkpoints"}  # made, not committed
Cell = dict[str, Any]


@cache
def every_file() -> tuple[Path, ...]:
    found = []
    for folder, inside, names in ROOT.walk() if hasattr(ROOT, "walk") else ((Path(top), dirs, files) for top, dirs, files in os.walk(ROOT)):
        inside[:] = [name for name in inside if name not in LEFT_OUT and not name.endswith(("_cache", "__pycache__"))]
        found += [folder / name for name in names]
    return tuple(sorted(found))


def committed(*patterns: str) -> list[Path]:
    return [path for path in every_file() if any(path.match(pattern) for pattern in patterns)]


# A notebook that is broken on purpose


def first(cells: list[Cell], role: str, kind: str = "code") -> Cell:
    return next(cell for cell in cells if cell["cell_type"] == kind and template.role_of(cell) == role)


def without(role: str) -> Callable[[list[Cell]], None]:
    def change(cells: list[Cell]) -> None:
        cells[:] = [cell for cell in cells if template.role_of(cell) != role]

    return change


def changed(role: str, old: str, new: str, kind: str = "markdown") -> Callable[[list[Cell]], None]:
    def change(cells: list[Cell]) -> None:
        cell = next(
            cell
            for cell in cells
            if cell["cell_type"] == kind and template.role_of(cell) == role and re.search(old, template.text_of(cell))
        )
        cell["source"] = [re.sub(old, new, template.text_of(cell), count=1)]

    return change


def put(role: str, **fields: Any) -> Callable[[list[Cell]], None]:
    return lambda cells: first(cells, role).update(fields)


def healthy(path: Path) -> None:
    assert health.faults(json.loads(path.read_text("utf-8")), path.parent) == []


ERROR = [{"output_type": "error", "ename": "KeyError", "evalue": "", "traceback": []}]
BREAKS: dict[str, tuple[Callable[[list[Cell]], None], tuple[Callable[[Path], None], ...]]] = {
    "a number of the prose": (changed("explain", r"\b\d+\b", "987654"), (template.test_every_number_of_the_prose_is_printed_or_computed_in_the_notebook,)),
    "a check that is gone": (without("check"), (template.test_roles_come_in_the_order_of_the_template,)),
    "a round without its exercise": (without("exercise"), (template.test_every_solution_is_folded_and_follows_an_exercise,)),
    "a wrong solution": (changed("solution", r"answer_1 = .*", "answer_1 = 12345"), (template.test_each_exercise_takes_the_right_answer_and_only_that,)),
    "an exercise that takes every answer": (changed("exercise", r"lesson\.check\(answer_1, [^\n]*", "show.Shown('x', '✓ Yes')", "code"), (template.test_each_exercise_takes_the_right_answer_and_only_that,)),
    "a cell that was not run": (put("run", execution_count=None), (template.test_every_code_cell_was_run_in_order, healthy)),
    "a cell that raised": (put("run", outputs=ERROR), (template.test_outputs_hold_no_error_warning_address_path_or_raw_repr, healthy)),
    "a link to nowhere": (changed("limits", r"\Z", " [more](nowhere.ipynb)"), (template.test_links_lead_to_notebooks_that_exist, healthy)),
    "an answer in the open": (lambda cells: first(cells, "reveal")["metadata"].pop("jupyter"), (template.test_answers_of_a_predicted_round_are_collapsed,)),
    "an answer that a class copy keeps": (changed("explain", r"\A", "```python\nanswer_1 = 1\n```\n"), (template.test_a_class_copy_holds_no_output_and_no_answer,)),
    "a story that reads a parameter": (changed("run", r"\A", "campaign\n", "code"), (template.test_only_the_yours_cells_read_the_parameters,)),
    "an assert": (changed("run", r"\A", "assert True\n", "code"), (template.test_no_name_is_bound_twice_and_nothing_is_imported_or_defined_after_setup,)),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_a_notebook_broken_on_purpose_fails_its_test_and_whole_it_passes(name: str, tmp_path: Path) -> None:
    change, tests = BREAKS[name]
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    for folder in ("docs", "fixtures", "tests"):  # where its links lead
        (tmp_path / folder).symlink_to(ROOT / folder)
    path = tmp_path / "notebooks" / "01_pick_a_winner.ipynb"
    for test in tests:
        test(path)
    content = json.loads(path.read_text("utf-8"))
    before = json.dumps(content)
    change(content["cells"])
    assert json.dumps(content) != before, "nothing was broken"
    path.write_text(json.dumps(content), "utf-8")
    for test in tests:
        with pytest.raises((AssertionError, ValueError)):
            test(path)


def test_nbval_fails_at_the_cell_that_raises_and_at_the_output_that_changed(tmp_path: Path) -> None:
    content = json.loads((ROOT / "notebooks" / "00_start_here.ipynb").read_text("utf-8"))
    cells = content["cells"] = [cell for cell in content["cells"] if template.role_of(cell) in ("setup", "table", "run", "check", "limits")]
    raises, other = first(cells, "check"), first(cells, "run")
    raises["source"] = [*raises["source"], "\n1 / 0"]
    texts = [output.get("text") or output["data"]["text/plain"] for output in other["outputs"]]
    assert any(re.search(r"\d", line) for text in texts for line in text)
    for text in texts:
        text[:] = [re.sub(r"\d", "7", line) for line in text]
    (tmp_path / "broken.ipynb").write_text(json.dumps(content), "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=60", "-p", "no:cacheprovider", "-rf"]
    command = [sys.executable, "-m", "pytest", *options, "broken.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    failed = {int(number) for number in re.findall(r"^FAILED broken\.ipynb::Cell (\d+)", done.stdout, re.MULTILINE)}
    assert failed == {code.index(raises), code.index(other)}, done.stdout
    assert "ZeroDivisionError" in done.stdout


def test_the_suite_runs_nbval_and_doctests_over_everything() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    assert {"tests", "evalkit", "notebooks"} <= set(options["testpaths"])
    assert {"--nbval", "--nbval-current-env", "--doctest-modules"} <= set(options["addopts"])
    assert options["filterwarnings"] == ["error"]
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


# Links, paths and targets


@cache
def pages() -> dict[Path, str]:
    """The Markdown of every page and notebook."""
    found = {path: path.read_text("utf-8") for path in committed("*.md")}
    for path in committed("notebooks/*.ipynb"):
        found[path] = "\n\n".join(template.text_of(cell) for cell in template.cells_of(path) if cell["cell_type"] == "markdown")
    return found


@cache
def anchors(path: Path) -> set[str]:
    """The anchors of a page as GitHub and JupyterLab make them, in lower case."""
    text = pages()[path] if path in pages() else path.read_text("utf-8")
    headings = re.findall(r"^#{1,6} (.+?)\s*$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain} | set(re.findall(r'id="([^"]+)"', text))


def test_every_link_and_every_anchor_inside_the_repository_resolves() -> None:
    seen, dead = 0, []
    for path, text in pages().items():
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)[^)]*\)|(?:href|src)=\"([^\"]+)\"", prose):
            link = next(filter(None, target))
            if re.match(r"[a-z]+:", link):
                continue
            seen += 1
            name, _, anchor = link.partition("#")
            there = (path.parent / name).resolve() if name else path
            if not there.exists() or (anchor and anchor.lower() not in anchors(there)):
                dead.append(f"{path.relative_to(ROOT)}: {link}")
    assert dead == []
    assert seen > 60


def test_every_path_that_a_page_names_is_there() -> None:
    """A name in backticks that starts with a folder of ours; PATTERNS and folders that a command makes are left out."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - LEFT_OUT | {".ci", ".github"}
    named, gone = 0, []
    for path, text in pages().items():
        for token in re.findall(r"`([\w.\-]+/[\w./\-*]*)`", text):
            if token.split("/")[0] in folders:
                named += 1
                if not ((path.parent / token).exists() or list(ROOT.glob(token.rstrip("/")))):
                    gone.append(f"{path.relative_to(ROOT)}: {token}")
    assert gone == []
    assert named > 15


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def test_every_make_target_that_a_page_or_a_workflow_names_exists() -> None:
    named: set[str] = set()
    for path in [*committed("*.md"), *(ROOT / ".github" / "workflows").glob("*.y*ml"), ROOT / ".ci" / "run"]:
        text = path.read_text("utf-8")
        for words in re.findall(r"(?:^|`|run: |&& )make ((?:[a-z][a-z-]*\b ?)+)", text, re.MULTILINE):
            named |= set(words.split()) if f"`make {words}" in text or f"run: make {words}" in text else {words.split()[0]}
    assert {"report", "test", "lab", "outputs", "test-long", "test-second-look"} <= named
    assert named <= targets(), named - targets()


def test_every_target_is_phony_or_a_file_and_says_what_it_is_for() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    phony = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split())  # type: ignore[index]
    assert targets() == phony
    assert [line for line in text.splitlines() if re.match(r"(?!clean)[a-z][a-z-]*:", line) and "##" not in line] == []


# Pins


def lists() -> dict[str, list[Requirement]]:
    return {
        path.relative_to(ROOT).as_posix(): [Requirement(line) for line in path.read_text("utf-8").splitlines() if re.match(r"\w", line)]
        for path in committed("requirements*.txt")
    }


def test_a_package_has_one_pin_wherever_it_is_named() -> None:
    versions: dict[str, set[str]] = defaultdict(set)
    for name, pins in lists().items():
        for pin in pins:
            assert str(pin.specifier).startswith("=="), f"{name}: {pin}"
            if not pin.marker and pin.url is None:
                versions[re.sub(r"[-_.]+", "-", pin.name).lower()].add(str(pin.specifier))
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_every_list_is_installed_by_a_target_and_every_target_names_a_list_that_exists() -> None:
    installed = set(re.findall(r"--requirement (\S+)", (ROOT / "Makefile").read_text("utf-8")))
    assert installed == set(lists())


def test_the_lowest_python_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lowest = project["project"]["requires-python"].removeprefix(">=")
    assert project["tool"]["ruff"]["target-version"] == f"py{lowest.replace('.', '')}"
    assert f"sys.version_info < ({lowest.replace('.', ', ')})" in (ROOT / "Makefile").read_text("utf-8")
    assert f"Python {lowest}+" in (ROOT / "README.md").read_text("utf-8")
    assert (ROOT / "binder" / "runtime.txt").read_text("utf-8") == f"python-{lowest}\n"
    for path in (ROOT / ".github" / "workflows").glob("*.y*ml"):
        found = re.findall(r"[\"'](3\.\d+)[\"']", path.read_text("utf-8"))
        assert found
        assert min(found, key=lambda version: int(version[2:])) == lowest
    for path, text in pages().items():
        for version in re.findall(r"Python (3\.\d+)\+", text):
            assert version == lowest, path


# The commands of the README


README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(make|python3?|\.venv/bin/\w+)\b")
INSTALLS = ("python3 -m venv .venv", ".venv/bin/python -m pip install ")  # what make does too: see the test of the Makefile
WHOLE = ("make test", "make outputs", "make class", ".venv/bin/python -m pytest", "make lab")  # this suite itself, or a server


def commands() -> list[str]:
    """Every command line of the README, from its blocks and from the text."""
    lines = [line for language, block in BLOCKS if not language for line in re.sub(r"\\\n\s*", "", block).splitlines()]
    lines += [
        re.sub(r"\s+", " ", span)
        for span in re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", re.sub(r"^```.*?^```", "", README, flags=re.DOTALL | re.MULTILINE))
    ]
    found = [re.sub(r"\s+#.*", "", line).strip() for line in lines]
    return sorted({line for line in found if COMMAND.match(line) and " " in line})


def words_of(command: str) -> list[str]:
    """The arguments of ``python -m evalkit``, or nothing."""
    words = shlex.split(command)
    return words[3:] if words[1:3] == ["-m", "evalkit"] else []


@pytest.fixture
def readers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the README's commands name."""
    monkeypatch.chdir(tmp_path)
    for name in ("notebooks", "binder", "pyproject.toml", "Makefile", "fixtures"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "results.csv").write_text(next(block for _, block in BLOCKS if block.startswith("candidate,instance,repetition,outcome")))
    rows = [
        f"{model},{task},{seed},{reward}"
        for model, rewards in (("old", "0.4 0.9"), ("new", "0.5 1"))
        for task, reward in zip("ab", rewards.split(), strict=True)
        for seed in (1, 2)
    ]
    (tmp_path / "runs.csv").write_text("\n".join(["model,task,seed,reward", *rows]) + "\n")
    (tmp_path / "logs").mkdir()
    log = (ROOT / "fixtures" / "sources" / "inspect" / "beta.json").read_text("utf-8")
    for name in ("openai/gpt-4o", "another/model"):  # a log is known by what it holds, not by its name
        (tmp_path / "logs" / f"{name.partition('/')[0]}.eval").write_text(log.replace('"beta"', f'"{name}"').replace("made-beta", name))
    counts = [
        f"{period},{group},{passed},10,10,task_type_v1,grader_7"
        for period, group, passed in (("march", "x", 4), ("march", "y", 9), ("april", "x", 3), ("april", "y", 8))
    ]
    (tmp_path / "counts.csv").write_text("\n".join(["period,group,passed,assessed,requested,grouping_rule,grader_version", *counts]) + "\n")
    requests = {
        "month": ["march"] * 3 + ["april"] * 3,
        "task_type": list("xxyxyy"),
        "ok": [True, False, True, True, True, False],
        "id": [f"r{n}" for n in range(6)],
    }
    polars.DataFrame(requests).write_parquet(tmp_path / "requests.parquet")
    shutil.copy(ROOT / "fixtures" / "mean_rule.json", tmp_path / "my_rule.json")
    return tmp_path


def test_every_command_of_the_readme_is_one_that_a_test_runs() -> None:
    found = commands()
    assert len(found) > 15
    for command in found:
        kinds = [
            command.startswith(INSTALLS),
            command.startswith(WHOLE),
            command.startswith(("make report", "make mix")),
            bool(words_of(command)),
            "papermill" in command,
        ]
        assert any(kinds), f"no test runs this command of the README: {command}"


def test_the_commands_of_the_readme_read_what_they_say(readers_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything short of the notebook itself, which the long run adds: the inputs are read, the verdict is computed."""
    evaluated = [words for command in commands() if (words := words_of(command))]
    evaluated.sort(key=lambda words: "reference march_mix.json" in " ".join(words))  # it is declared first
    ran = []
    for words in evaluated:
        if words[0] == "report" and "-p" in words:
            given = {words[at + 1]: words[at + 2] for at, word in enumerate(words) if word == "-p"}
            found = (report.release if words[1] == "release" else report.mix)(**given)
            assert found.decision.verdict if words[1] == "release" else found.comparison.bound
            ran.append(f"report {words[1]}")
        elif words[0] in ("reference", "tabulate"):
            at = words.index("-o") + 1
            made = readers_folder / words[at] if words[0] == "reference" else readers_folder / f"made {words[at]}"
            made.unlink(missing_ok=True)
            words[at] = str(made)
            assert main(words) == 0, (words, capsys.readouterr().err)
            ran.append(words[0])
    assert sorted(set(ran)) == ["reference", "report mix", "report release", "tabulate"]
    assert read_reference(readers_folder / "march_mix.json").reference_id == "march_mix_v1"
    assert set(read_tallies(readers_folder / "made counts.csv")) == {"march", "april"}


def test_the_python_of_the_readme_runs(readers_folder: Path) -> None:
    """The lines for Spark, on the same rows in Polars: what goes in differs, what comes back does not."""

    class Spark:
        @staticmethod
        def table(_name: str) -> polars.DataFrame:
            return polars.read_csv(readers_folder / "runs.csv").with_columns(ok=polars.col("reward") > 0.45)

    (code,) = [block for language, block in BLOCKS if language == "python"]
    exec(code, {"frame": frame, "spark": Spark, "Path": Path, "campaign_csv": campaign_csv})
    assert read_campaign(readers_folder / "campaign.csv").candidates == ("new", "old")


def test_make_would_run_what_the_readme_says(readers_folder: Path) -> None:
    """``make -n`` of every make command: the target exists, and the line that it prints names the reader's file."""
    if shutil.which("make") is None:
        pytest.skip("no make")
    for command in commands():
        if command.startswith("make ") and command.split()[1] in targets():
            done = subprocess.run(
                ["make", "-n", *shlex.split(command)[1:]], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
            )
            said = re.findall(r"(\w+)=(\S+)", command)
            assert all(value in done.stdout for _, value in said), (command, done.stdout)


@pytest.mark.skipif(not LONG, reason="make test-long: runs the report notebooks")
def test_the_report_commands_of_the_readme_run_whole(readers_folder: Path) -> None:
    python = sys.executable
    environment = {**os.environ, "GITHUB_STEP_SUMMARY": ""}

    def run(words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=readers_folder, capture_output=True, text=True, timeout=600, env=environment, check=False)

    def must(done: subprocess.CompletedProcess[str], *statuses: int) -> None:
        assert done.returncode in statuses, done.stdout + done.stderr

    for command in (c for c in commands() if " reference --from" in c):
        must(run([python, *shlex.split(command)[1:]]), 0)
    for command in commands():
        words = shlex.split(command)
        if words_of(command)[:1] == ["report"] and "-p" in words:
            must(run([python, *words[1:]]), 0, 10, 11)
            must(run([python, "-m", "evalkit", "verify", words[words.index("-o") + 1]]), 0)
        elif "papermill" in command:
            must(run([python, "-m", "papermill", *words[1:]]), 0)
        elif command.startswith(("make report", "make mix")):
            recipe = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()[
                -1
            ]
            must(run([python, *shlex.split(recipe)[1:]]), 0, 10, 11)


def test_the_tables_of_the_readme_hold_todays_figures() -> None:
    campaign, tallies, reference = read_campaign(), read_tallies(), read_reference()
    for name in ("CLAUDE", "MERGE"):
        view = campaign.of(name)
        assert re.search(rf"{int(cell_mean(view) * view.cells)} of {view.cells}\b", README)
        assert re.search(rf"{fail_closed(view)} of {len(view.ids)}\b", README)
    observed = [f"{int(100 * observed_rate(tallies[name]))} %" for name in ("baseline", "candidate")]
    at_reference = [f"{int(100 * standardise(tallies[name], reference))} %" for name in ("baseline", "candidate")]
    assert f"| {' | '.join(observed)} | +30 points |" in README
    assert f"| {' | '.join(at_reference)} | −10 points |" in README


# Public names


FUNCTIONS = [name for name in evalkit.__all__ if inspect.isfunction(getattr(evalkit, name))]
NEVER_REFUSE = {"equal_weights", "unit"}
NOT_A_NUMBER = {
    "compare",
    "decide",
    "rank",
    "review",
    "unit",
    "read_campaign",
    "read_reference",
    "read_rule",
    "read_tallies",
    "equal_weights",
}


def documented(name: str, owner: Any = evalkit) -> str:
    return inspect.getdoc(getattr(owner, name)) or ""


@pytest.mark.parametrize("name", evalkit.__all__)
def test_every_public_name_says_what_it_is_in_its_first_line(name: str) -> None:
    first_line = documented(name).split("\n\n")[0]
    assert len(first_line.split()) >= 4
    assert first_line.rstrip()[-1] in ".:"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_has_its_doctest_its_refusals_and_its_source(name: str) -> None:
    text = documented(name)
    assert ">>> " in text, "no doctest"
    assert name in NEVER_REFUSE or re.search(r"Raises: |[Rr]efused", text), "does not say what it refuses"
    assert name in NOT_A_NUMBER or re.search(r"Source: |\b(19|20)\d\d\b", text), "does not say where its number comes from"


def test_every_built_in_reduction_states_its_unit_and_refuses_a_missing_cell() -> None:
    from evalkit.reductions import _BY_NAME, _WITH_K, lowest, unit_of

    for reduction in [*_BY_NAME.values(), *(make(2) for make in _WITH_K.values()), lowest("cost")]:
        assert unit_of(reduction)
    for made in (*_BY_NAME.values(), *_WITH_K.values(), lowest):
        assert "CoverageError" in (inspect.getdoc(made) or "")


def test_every_statistic_names_its_source_or_its_model_and_shows_a_number() -> None:
    from evalkit import uncertainty

    for name in uncertainty.__all__:
        text = documented(name, uncertainty)
        assert text
        if inspect.isfunction(getattr(uncertainty, name)) and name not in (
            "with_margin",
            "pooled_chances",
            "clustered_wilson",
            "cr2_difference",
        ):
            assert ">>> " in text, name
        if inspect.isfunction(getattr(uncertainty, name)):
            assert re.search(r"\b(19|20)\d\d\b|McNemar|Bonferroni|enumeration|model of no difference|drawn|draws", text), name


# Code that nothing reaches


NOT_SHOWN_YET = {"clopper_pearson"}  # the interval with a guarantee, offered beside Wilson's; for the tutorial on luck
EXPECTED_BY_PYTHON = re.compile(r"__\w+__|_repr_\w+_|_render_traceback_|_ipython_\w+_")


def names_in(*nodes: ast.AST) -> set[str]:
    found = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                found.add(part.id)
            elif isinstance(part, ast.Attribute):
                found.add(part.attr)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
                found.add(part.value)  # getattr, and what is imported when first used
    return found


def unreached(module_texts: dict[str, str], notebooks: str) -> set[str]:
    """The functions, classes, methods and constants that no notebook, no report and no command reaches, by name."""
    bodies: dict[str, list[ast.AST]] = defaultdict(list)
    roots = names_in(ast.parse(notebooks)) | {"main"}
    for text in module_texts.values():
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and EXPECTED_BY_PYTHON.fullmatch(node.name):
                roots |= names_in(node)
            elif isinstance(node, ast.FunctionDef):
                bodies[node.name].append(node)
            elif isinstance(node, ast.ClassDef):
                inside = [m for m in node.body if isinstance(m, ast.FunctionDef) and not EXPECTED_BY_PYTHON.fullmatch(m.name)]
                for method in inside:
                    bodies[method.name].append(method)
                bodies[node.name] += [part for part in [*node.body, *node.decorator_list, *node.bases] if part not in inside]
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name) and target.id != "__all__":
                        bodies[target.id].append(node.value or node)
                    elif not isinstance(target, ast.Name):
                        roots |= names_in(node)
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                roots |= names_in(node)
    seen: set[str] = set()
    todo = roots & bodies.keys()
    while todo:
        seen |= todo
        todo = (names_in(*(part for name in todo for part in bodies[name])) & bodies.keys()) - seen
    return {name for name in bodies.keys() - seen if not EXPECTED_BY_PYTHON.fullmatch(name)}


def module_texts() -> dict[str, str]:
    return {str(path): path.read_text("utf-8") for path in sorted((ROOT / "evalkit").rglob("*.py"))}


def notebook_code() -> str:
    return "\n".join(
        template.text_of(cell) for path in template.TUTORIALS + template.REPORTS for cell in template.code_of(template.cells_of(path))
    )


def test_every_function_is_reached_by_a_notebook_a_report_or_a_command() -> None:
    assert unreached(module_texts(), notebook_code()) <= NOT_SHOWN_YET


def test_a_function_that_nothing_calls_is_found() -> None:
    texts = {
        **module_texts(),
        "new.py": "LIMIT = 3\n\n\ndef _never():\n    return _only_from_never()\n\n\ndef _only_from_never():\n    return LIMIT\n",
    }
    assert unreached(texts, notebook_code()) - NOT_SHOWN_YET == {"_never", "_only_from_never", "LIMIT"}


def test_every_fixture_and_every_file_of_docs_is_used() -> None:
    """A file that no test, notebook, module, page or target names is a leftover."""
    texts = [
        path.read_text("utf-8", errors="replace")
        for path in committed("*.py", "*.md", "*.ipynb", "*.json", "*.toml", "*.yml", "Makefile", "*.sh")
    ]
    everything = "\n".join(texts)
    broken = ROOT / "fixtures" / "broken"
    files = [
        path
        for path in committed("*")
        if path.relative_to(ROOT).parts[0] in ("docs", "fixtures") and "sources" not in path.parts and broken not in path.parents
    ]
    assert len(files) > 20
    assert [path.name for path in files if path.name not in everything and path.stem not in everything] == []
