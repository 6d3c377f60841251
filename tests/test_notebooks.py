"""The notebooks as a reader meets them: roles, budgets, numbers, exercises, parameters, and outputs fit to compare."""

from __future__ import annotations

import ast
import json
import math
import re
import shutil
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from evalkit.lesson import class_copy

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
REPORTS = sorted((ROOT / "notebooks").glob("report_*.ipynb"))
FIRST_NINE = [
    "00_start_here", "01_pick_a_winner", "02_gate_a_release", "03_turn_the_dial", "04_watch_the_mix", "05_hold_the_mix_fixed",
    "06_when_labels_are_missing", "07_how_sure_are_you", "08_write_your_own_rule",
]  # fmt: skip

HEAD, TAIL = ["title", "parameters", "setup"], ["limits", "yours"]
ROUND = ["question", "table", "predict", "run", "reveal", "read", "picture", "play", "check", "explain", "exercise"]
REPORT_ROLES = {"title", "parameters", "setup", "table", "run", "picture", "limits"}
MODULES = {"collections", "dataclasses", "evalkit", "fractions", "itertools", "json", "math", "pathlib"}
OWN_RULES = {"08_write_your_own_rule"}  # where a reader writes a reduction; nowhere else does a tutorial define a function
VERBS = {
    "Start",
    "Pick",
    "Gate",
    "Turn",
    "Watch",
    "Hold",
    "Count",
    "Ask",
    "Write",
    "Read",
    "Compare",
    "Decide",
    "Bound",
    "Meet",
    "Weigh",
    "Find",
    "Face",
    "See",
}

Cell = dict[str, Any]
tutorials = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
every = pytest.mark.parametrize("path", TUTORIALS + REPORTS, ids=lambda path: path.stem)


def cells_of(path: Path) -> list[Cell]:
    cells: list[Cell] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def text_of(cell: Cell) -> str:
    return "".join(cell["source"])


def code_of(cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell["cell_type"] == "code"]


def role_of(cell: Cell) -> str:
    """A cell's one tag; a solution belongs to the exercise before it."""
    (tag,) = cell["metadata"]["tags"]
    return str(tag)


def shown_by(cell: Cell) -> str:
    """The text of all outputs of a cell."""
    parts = []
    for output in cell["outputs"]:
        parts += output.get("text", []) or output["data"].get("text/plain", [])
    return "".join(parts)


def rounds_of(cells: list[Cell]) -> list[list[Cell]]:
    """The cells between setup and limits; a round opens with a question."""
    rounds: list[list[Cell]] = []
    for cell in cells:
        if role_of(cell) in HEAD + TAIL:
            continue
        if role_of(cell) == "question" or not rounds:
            rounds.append([])
        rounds[-1].append(cell)
    return rounds


def bound_in(cell: Cell) -> set[str]:
    """The names that a code cell binds, those inside a comprehension or a lambda left out."""
    names: set[str] = set()
    tree = ast.parse(text_of(cell))
    inside = {id(n) for node in ast.walk(tree) if isinstance(node, ast.comprehension) for n in ast.walk(node.target)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in inside:
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


# Structure


def test_the_first_nine_tutorials_and_both_reports_are_there():
    assert [path.stem for path in TUTORIALS][:9] == FIRST_NINE
    assert [path.stem for path in REPORTS] == ["report_mix", "report_release"]


@tutorials
def test_roles_come_in_the_order_of_the_template(path):
    cells = cells_of(path)
    roles = [role_of(cell) for cell in cells]
    assert roles[:3] == HEAD
    tail = roles[roles.index("limits") :]
    assert sorted(tail, key=TAIL.index) == tail
    assert "yours" in tail
    rounds = rounds_of(cells)
    middle = [[role_of(cell) for cell in each] for each in rounds]
    assert sum(map(len, middle)) + len(HEAD) + len(tail) == len(cells)
    for each in middle:
        assert each[0] == "question"
        places = [ROUND.index("exercise" if role == "solution" else role) for role in each]
        assert places == sorted(places), each
    assert set(ROUND) - {"play"} <= {role for each in middle for role in each}
    first = middle[0]
    assert [role for role in ROUND if role in first][:7] == ROUND[:7], "the first round tells the whole story"


@tutorials
def test_every_solution_is_folded_and_follows_an_exercise(path):
    roles = [role_of(cell) for cell in cells_of(path)]
    solutions = [cell for cell in cells_of(path) if role_of(cell) == "solution"]
    assert solutions
    assert all(roles[i - 1] == "exercise" for i, role in enumerate(roles) if role == "solution")
    for cell in solutions:
        assert cell["cell_type"] == "markdown"
        assert text_of(cell).startswith("<details><summary>Solution</summary>\n\n")
        assert text_of(cell).endswith("\n\n</details>")


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_reports_use_the_report_roles_only(path):
    roles = [role_of(cell) for cell in cells_of(path)]
    assert roles[:3] == HEAD
    assert set(roles) <= REPORT_ROLES
    assert roles[-1] == "limits"


@every
def test_each_title_starts_with_a_verb_and_is_the_only_one(path):
    headings = [
        line for cell in cells_of(path) if cell["cell_type"] == "markdown" for line in text_of(cell).splitlines() if re.match("#+ ", line)
    ]
    assert headings[0].startswith("# ")
    assert headings[0].split()[1] in VERBS
    assert all(line.startswith("## ") for line in headings[1:])


@tutorials
def test_the_budget_holds(path):
    cells = cells_of(path)
    code, prose = code_of(cells), [cell for cell in cells if cell["cell_type"] == "markdown"]
    lines = [[line for line in text_of(cell).splitlines() if line.strip()] for cell in code]
    assert len(cells) <= 30
    assert sum(len(text_of(cell).split()) for cell in prose) <= 1000
    assert sum(map(len, lines)) <= 60
    assert max(map(len, lines)) <= 8
    assert max(len(line) for each in lines for line in each) <= 100
    assert all(len(text_of(cell).split()) <= 80 for cell in prose if role_of(cell) == "question")
    pages = ["".join(output.get("data", {}).get("text/html", [])) for cell in code for output in cell["outputs"]]
    assert sum(page.count("<img ") for page in pages) <= 2


@tutorials
def test_no_name_is_bound_twice_and_nothing_is_imported_or_defined_after_setup(path):
    seen: set[str] = set()
    for cell in code_of(cells_of(path)):
        again = seen & bound_in(cell)
        assert not again, (cell["id"], again)
        seen |= bound_in(cell)
        for node in ast.walk(ast.parse(text_of(cell))):
            if isinstance(node, ast.FunctionDef) and path.stem in OWN_RULES:
                assert [ast.unparse(mark.func) for mark in node.decorator_list if isinstance(mark, ast.Call)] == ["unit"], cell["id"]
            else:
                assert not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef), cell["id"]
            assert not isinstance(node, ast.Assert), "assert vanishes under python -O"
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert role_of(cell) == "setup"
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                assert {name.split(".")[0] for name in modules} <= MODULES
        assert not re.search(r"^\s*[%!]|random|urlopen|requests\.", text_of(cell), re.MULTILINE)


@tutorials
def test_only_the_yours_cells_read_the_parameters(path):
    cells = code_of(cells_of(path))
    (declared,) = [cell for cell in cells if role_of(cell) == "parameters"]
    names = bound_in(declared)
    readers = {
        role_of(cell)
        for cell in cells
        for node in ast.walk(ast.parse(text_of(cell)))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
    }
    assert readers == {"yours"}


@tutorials
def test_answers_of_a_predicted_round_are_collapsed(path):
    for each in rounds_of(cells_of(path)):
        if any(role_of(cell) == "predict" for cell in each):
            for cell in code_of(each):
                hidden = cell["metadata"].get("jupyter", {}).get("outputs_hidden", False)
                assert hidden == (role_of(cell) in ("run", "reveal", "picture", "play")), cell["id"]


@every
def test_the_first_line_of_every_folded_output_is_blank(path):
    """JupyterLab shows that line on the fold, and passes over one without even a space."""
    for cell in code_of(cells_of(path)):
        if cell["metadata"].get("jupyter", {}).get("outputs_hidden"):
            for output in cell["outputs"]:
                data = output.get("data", {})
                shown = "".join(output.get("text") or data.get("text/html") or data["text/plain"])
                on_the_fold = next(filter(None, shown.split("\n")))
                assert on_the_fold.isspace(), f"{cell['id']} tells its answer on the fold: {on_the_fold[:60]}"


@every
def test_metadata_is_the_same_on_every_machine(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["metadata"] == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    ids = [cell["id"] for cell in content["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(rf"{role_of(cell)}(-[0-9]+)?", cell["id"]) for cell in content["cells"])
    assert all(set(cell["metadata"]) <= {"tags", "jupyter"} for cell in content["cells"])


@tutorials
def test_links_lead_to_notebooks_that_exist(path):
    for cell in cells_of(path):
        for target in re.findall(r"\]\(([^)]*)\)", text_of(cell) if cell["cell_type"] == "markdown" else ""):
            assert (path.parent / target.partition("#")[0]).is_file(), target


# Outputs


@every
def test_every_code_cell_was_run_in_order(path):
    """nbval runs a cell without an execution count and compares nothing."""
    counts = [cell["execution_count"] for cell in code_of(cells_of(path))]
    assert counts == list(range(1, len(counts) + 1)), "run make outputs"


@every
def test_outputs_hold_no_error_warning_address_path_or_raw_repr(path):
    for cell in code_of(cells_of(path)):
        for output in cell["outputs"]:
            assert output["output_type"] in ("execute_result", "display_data", "stream")
            assert output.get("name", "stdout") == "stdout"
        if role_of(cell) != "read":
            said = shown_by(cell)
            assert not re.search(r"0x[0-9a-f]{6,}|<class |Warning|Traceback| object at |Fraction\(|mappingproxy|np\.|\bnan\b", said), cell[
                "id"
            ]
            assert str(ROOT) not in said
            assert str(Path.home()) + "/" not in said


@every
def test_every_image_has_a_description(path):
    for cell in code_of(cells_of(path)):
        for output in cell["outputs"]:
            html = "".join(output.get("data", {}).get("text/html", []))
            assert html.count("<img ") == len(re.findall(r'<img alt="[^"]{40,}"', html))
            assert "image/svg+xml" not in output.get("data", {})


def numbers_in(text: str) -> set[Fraction]:
    """The numbers of a text by value; 45% and 0.45 are both meant by 45%."""
    found: set[Fraction] = set()
    for number, sign in re.findall(r"(?<![\w.^@/])(\d[\d,]*(?:\.\d+)?(?:/\d+)?)(%?)", text):
        plain = number.replace(",", "")
        top, _, bottom = plain.partition("/")
        if bottom and int(bottom):
            found.add(Fraction(top) / int(bottom))
        else:
            found.add(Fraction(top))
        if sign:
            found.add(Fraction(top) / 100)
    return found


@tutorials
def test_every_number_of_the_prose_is_printed_or_computed_in_the_notebook(path):
    cells = cells_of(path)
    known = set().union(*(numbers_in(shown_by(cell)) | numbers_in(text_of(cell)) for cell in code_of(cells)))
    for cell in cells:
        if cell["cell_type"] == "markdown":
            prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|About \d+ minutes", " ", text_of(cell), flags=re.DOTALL)
            known_here = known | set().union(
                *(numbers_in(block) for block in re.findall(r"```python(.*?)```", text_of(cell), re.DOTALL)), set()
            )
            missing = {number for number in numbers_in(prose) if not {number, number / 100} & known_here}
            assert not missing, (cell["id"], [str(number) for number in missing])


# Exercises


def value_of(source: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last expression, as a notebook would show it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


@tutorials
def test_each_exercise_takes_the_right_answer_and_only_that(path):
    names: dict[str, Any] = {}
    exercises, solutions = [], []
    for cell in cells_of(path):
        if cell["cell_type"] == "code" and role_of(cell) not in ("picture", "play", "yours"):
            value_of(text_of(cell), names)
        if role_of(cell) == "exercise" and text_of(cell).startswith("answer"):
            exercises.append(text_of(cell))
        if role_of(cell) == "solution":
            solutions += re.findall(r"```python\n(.*?)```", text_of(cell), re.DOTALL)
    assert exercises
    assert solutions
    solved = dict(names)
    for solution in solutions:
        exec(solution, solved)
    for source in exercises:
        name, rest = source.split(" = None  # ", 1)[0], source.split("\n", 1)[1]
        said = {
            label: value_of(rest, {**names, name: answer}).text
            for label, answer in {
                "blank": None, "right": solved[name], "float": 0.5, "nan": float("nan"), "wrong": Fraction(-7, 3), "word": "perhaps", "list": [1],
                "yes": True, "kind": Fraction, "huge": 10**400,
            }.items()
        }  # fmt: skip
        assert said.pop("blank").startswith("No answer yet")
        assert said.pop("right").startswith("✓ Yes"), (path.stem, name, solved[name])
        assert "is a float" in said.pop("float")
        assert not [label for label, words in said.items() if "✓" in words]


@tutorials
def test_a_class_copy_holds_no_output_and_no_answer(path):
    text = path.read_text(encoding="utf-8")
    filled = re.sub(r"((?:answer|guess)\w*) = None", r"\1 = Fraction(9991, 9973)", text)
    for copy in (class_copy(text), class_copy(filled)):
        cells = json.loads(copy)["cells"]
        assert "9991" not in copy
        assert "<details>" not in copy
        assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code_of(cells))
        assert [role_of(cell) for cell in cells] == [role_of(cell) for cell in cells_of(path) if role_of(cell) != "solution"]
        for cell in cells:
            for line in text_of(cell).splitlines():
                assert not re.match(r"(answer|guess)\w* = (?!None\b)", line)
        left = "\n".join(text_of(cell) for cell in cells)
        for cell in cells_of(path):
            for expression in re.findall(r"^answer\w* = (.*\(.*)$", text_of(cell) if role_of(cell) == "solution" else "", re.MULTILINE):
                assert expression not in left


# Parameters, papermill, nbval


@every
def test_parameters_are_text_or_whole_numbers_that_papermill_can_explain(path):
    from papermill import inspect_notebook

    (cell,) = [cell for cell in code_of(cells_of(path)) if role_of(cell) == "parameters"]
    found = inspect_notebook(str(path))
    assert list(found) == [line.split(":")[0] for line in text_of(cell).splitlines()]
    for parameter in found.values():
        assert parameter["inferred_type_name"] in ("str", "int")
        assert len(parameter["help"]) > 10
        assert "=" not in parameter["help"]


OWN = {
    "campaign": "candidate,instance,repetition,outcome\n" + "".join(f"{c},i{i},{r},{'pass' if i < n else 'fail'}\n" for c, n in (("mine", 2), ("theirs", 1)) for i in range(3) for r in (1, 2)),
    "tallies": "period,group,passed,assessed,requested\nMay,routine,8,10,10\nMay,complex,3,10,10\nJune,routine,9,10,10\nJune,complex,4,10,10\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("stem", "parameters", "expected"),
    [
        ("01_pick_a_winner", {"campaign": "my.csv", "incumbent": "theirs"}, "promote mine  5 of 5 conditions met"),
        ("05_hold_the_mix_fixed", {"tallies": "my.csv", "baseline": "May", "candidate": "June"}, "55.0%"),
        ("09_real_campaigns", {"campaign": "my.csv", "incumbent": "theirs"}, "PROMOTE: mine may replace theirs"),
        ("10_real_mixes", {"tallies": "my.csv", "baseline": "May", "candidate": "June"}, "55.0%"),
    ],
)
def test_papermill_reads_a_readers_file_from_any_folder_and_leaves_the_story_alone(stem, parameters, expected, tmp_path, monkeypatch):
    from papermill import execute_notebook

    (tmp_path / "my.csv").write_text(OWN[next(iter(parameters))])
    monkeypatch.chdir(tmp_path)
    source = ROOT / "notebooks" / f"{stem}.ipynb"
    began = time.monotonic()
    execute_notebook(str(source), "out.ipynb", parameters=parameters, progress_bar=False, log_output=False)
    assert time.monotonic() - began < 20
    ran = {cell["id"]: cell for cell in cells_of(tmp_path / "out.ipynb")}
    assert expected in "".join(
        shown_by(cell) for cell in ran.values() if cell["metadata"]["tags"] == ["yours"] and cell["cell_type"] == "code"
    )
    for cell in code_of(cells_of(source)):
        if role_of(cell) not in ("parameters", "yours"):
            assert shown_by(ran[cell["id"]]) == shown_by(cell), cell["id"]


def test_nbval_sees_a_number_that_changed(tmp_path):
    content = json.loads((ROOT / "notebooks" / "01_pick_a_winner.ipynb").read_text(encoding="utf-8"))
    content["cells"] = [cell for cell in content["cells"] if role_of(cell) != "picture"]
    text = json.dumps(content)
    assert text.count('\\"failClosed\\": 2') == 1
    (tmp_path / "broken.ipynb").write_text(text.replace('\\"failClosed\\": 2', '\\"failClosed\\": 3'), encoding="utf-8")
    shutil.copy(ROOT / "tests" / "nbval_sanitize.cfg", tmp_path)
    options = [
        "--nbval",
        "--nbval-current-env",
        "--nbval-cell-timeout=60",
        "--nbval-sanitize-with=nbval_sanitize.cfg",
        "-p",
        "no:cacheprovider",
    ]
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "broken.ipynb"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"\b1 failed, 1\d passed", done.stdout), done.stdout


# What the two stories must print


def test_01_prints_the_articles_closing_object():
    (printed,) = [
        shown_by(cell) for cell in code_of(cells_of(ROOT / "notebooks" / "01_pick_a_winner.ipynb")) if "json.dumps" in text_of(cell)
    ]
    closing = {"claude": {"mean": 0.4166666666666667, "failClosed": 2}, "merge": {"mean": 0.5, "failClosed": 1}, "winner": "CLAUDE"}
    assert printed == json.dumps(closing, indent=2) + "\n"


def test_02_withholds_six_times_and_each_time_for_its_own_reason():
    said = [shown_by(cell) for cell in code_of(cells_of(ROOT / "notebooks" / "02_gate_a_release.ipynb")) if role_of(cell) == "run"]
    assert [words.split(":")[0].split()[0] for words in said] == ["KEEP", "KEEP", "UNDECIDED", "KEEP", "KEEP", "UNDECIDED"]
    withheld = [
        [re.split(r"  +", line)[0] for line in words.splitlines() if re.search(r"  (not met|not evaluated)  ", line)] for words in said
    ]
    assert withheld == [
        ["strictly above the incumbent"],
        ["at or above the floor 3"],
        ["strictly above the incumbent"],
        ["every cell of group safety passed"],
        ["total cost at most 40"],
        ["signed off by safety"],
    ]


def test_05_prints_the_six_lines_of_the_traffic_mix():
    printed = [shown_by(cell) for cell in code_of(cells_of(ROOT / "notebooks" / "05_hold_the_mix_fixed.ipynb"))]
    assert (
        " \nbaseline: observed=45.0%, reference_mix=45.0%\n  routine: 90/100 = 90.0%\n  complex: 360/900 = 40.0%\n"
        "candidate: observed=75.0%, reference_mix=35.0%\n  routine: 720/900 = 80.0%\n  complex: 30/100 = 30.0%\n"
    ) in printed
    assert any("0.45000000000000007 against 0.45\n" in words and "9/20 against 9/20" in words for words in printed)


def test_06_keeps_both_ends_and_says_when_they_no_longer_matter():
    cells = code_of(cells_of(ROOT / "notebooks" / "06_when_labels_are_missing.ipynb"))
    said = [shown_by(cell) for cell in cells if role_of(cell) == "run"]
    assert said[0].split("\n")[1].split() == ["3/5", "4/5", "8", "of", "10", "cells", "3/4"]
    assert "its direction is not decided" in said[1]
    assert "940 of 1000 requests" in said[2]
    assert "the rate falls whatever they are" in said[2]
    assert [line.split()[-1] for line in said[3].splitlines()[-4:-1]] == ["yes", "no", "no"]
    assert said[4].startswith("PROMOTE: CLAUDE may replace BASELINE")


def test_07_prints_what_coins_can_do():
    cells = code_of(cells_of(ROOT / "notebooks" / "07_how_sure_are_you.ipynb"))
    said = "\n".join(shown_by(cell) for cell in cells)
    assert "The answer is always" in said
    assert "10 instances: 9 of 10, 0.900 (0.596 to 0.982)" in said
    rows = [re.findall(r"0\.\d{3}", line) for line in said.splitlines() if re.match("(cell mean|fail-closed, then cell mean) ", line)]
    assert rows == [["0.622", "0.193", "0.186"], ["0.319", "0.016", "0.665"]]
    # By enumeration: six equals whose resolved instances are binomial with 6 tries of 1/4; the best of five is above the sixth.
    share = [math.comb(6, k) * 3 ** (6 - k) / 4**6 for k in range(7)]
    exact = 1 - sum(p * sum(share[: k + 1]) ** 5 for k, p in enumerate(share))
    (drawn,) = re.findall(r"^ *6 +5 +[\d.]+% +[\d.]+% +([\d.]+)%$", said, re.MULTILINE)
    assert abs(float(drawn) / 100 - exact) < 0.01


def test_08_writes_a_fixture_whose_test_passes_and_notices_the_mean(tmp_path):
    cells = code_of(cells_of(ROOT / "notebooks" / "08_write_your_own_rule.ipynb"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        if role_of(cell) != "picture":
            value_of(text_of(cell), names)
        if role_of(cell) == "parameters":
            names["folder"] = str(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disagreement.csv", "test_disagreement.py"]
    (rule,) = [text_of(cell) for cell in cells if "def majority" in text_of(cell)]
    imports = "from evalkit import unit\nfrom evalkit.campaign import require_complete\n"
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    outcomes = []
    for text in (rule, re.sub(r"return .*", "return int(instances.passed.sum())", rule)):
        (tmp_path / "my_rules.py").write_text(imports + text)
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        outcomes.append(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120).returncode)
    assert outcomes == [0, 1]
