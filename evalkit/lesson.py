"""What a tutorial says back to its reader: predictions, checks by a second route, exercises, and the library's own source.

``assert`` vanishes under ``python -O``, so notebooks call ``expect`` and ``check``.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from html import escape
from pathlib import Path

import numpy as np

from ._exact import as_text, decimal, percent
from .campaign import Campaign, Instances
from .decide import Decision, rank, rank_key
from .errors import EvalkitError, plain, quote
from .reductions import Reduction, counted, name_of, unit_of
from .reweighting import Tally, group_rates, observed_rate
from .show import Shown, conditions, headline, sentence, table

__all__ = ["check", "class_copy", "expect", "gate", "predict", "ranking", "rates", "reveal", "source"]


def predict(guess: object, options: Sequence[str]) -> Shown:
    """Take a guess before the answer is shown; none is fine, another word is not.

    >>> predict(None, ["CLAUDE", "MERGE"])
    No guess yet. Set your guess to 'CLAUDE' or 'MERGE' and run again, or read on.
    """
    choices = " or ".join(repr(option) for option in options)
    if guess is None:
        return sentence(f"No guess yet. Set your guess to {choices} and run again, or read on.")
    if guess not in options:
        return sentence(f"{quote(guess)} is not one of the answers: {choices}.")
    return sentence(f"Your guess: {guess}. Run the next cells to see.")


def reveal(guess: object, answer: str, because: str) -> Shown:
    """The answer, beside the guess.

    >>> reveal("MERGE", "CLAUDE", "2 instances against 1")
    You guessed MERGE; the answer is CLAUDE: 2 instances against 1.
    """
    told = (
        f"The answer is {answer}"
        if guess is None
        else f"You guessed {answer}, and so it is"
        if guess == answer
        else f"You guessed {guess}; the answer is {answer}"
    )
    return sentence(f"{told}: {because}.")


def expect(claim: str, found: object, wanted: object) -> Shown:
    """A number by a second route: say that they agree, or stop the notebook.

    >>> expect("passing cells of MERGE", 6, 1 + 2 + 3)
    ✓ passing cells of MERGE: 6 by both routes
    """
    if type(found) is not type(wanted) or found != wanted:
        raise EvalkitError(f"{claim}: {quote(found)}", quote(wanted), "the two routes must agree; the notebook is wrong")
    return sentence(f"✓ {claim}: {found} by both routes")


def check(answer: object, wanted: int | Fraction | str, hint: str) -> Shown:
    """A self-check of an exercise. It never raises, since a wrong answer is part of learning.

    >>> check(0.5, Fraction(1, 2), "divide passed cells by all cells")
    0.5 is a float; write an exact number, such as Fraction(1, 3) or 2.
    """
    if answer is None:
        return sentence("No answer yet. Replace None and run this cell.")
    if isinstance(answer, np.integer):
        answer = int(answer)
    if isinstance(answer, (bool, np.bool_)) or (isinstance(answer, (int, Fraction)) and isinstance(wanted, str)):
        return sentence(f"Not yet: {quote(answer)}. {hint}")
    if isinstance(answer, (float, np.floating)):
        return sentence(f"{float(answer)!r} is a float; write an exact number, such as Fraction(1, 3) or 2.")
    try:
        right = bool(answer == wanted)
    except Exception:  # noqa: BLE001  a reader may pass anything, and the check must not raise
        right = False
    return sentence(f"✓ Yes: {quote(answer) if isinstance(answer, str) else answer}." if right else f"Not yet: {quote(answer)}. {hint}")


def source(function: Callable[..., object]) -> Shown:
    """The library's own source: it is the explanation."""
    text = inspect.getsource(function).rstrip()
    style = (
        "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;border-left:3px solid #0072B2;padding-left:1em;font-family:monospace"
    )
    lines = "\n".join(map(_hanging, text.splitlines()))
    return Shown(f'<pre style="{style}"><code>{lines}</code></pre>', text)


def _hanging(line: str) -> str:
    """A long line of code goes on further to the right than it began, where a page breaks it."""
    if len(line) <= 80:
        return escape(line)
    deep = 0.6 * (len(line) - len(line.lstrip()) + 4)
    return f'<span style="display:inline-block;padding-left:{deep:.1f}em;text-indent:-{deep:.1f}em">{escape(line)}</span>'


def ranking(campaign: Campaign | Mapping[str, Instances], *key: Reduction) -> Shown:
    """Every candidate, all of them complete, in its place under a key, with what each reduction counted.

    Candidates that no campaign joins come as a mapping of each one's instances.
    """
    views = campaign if isinstance(campaign, Mapping) else {name: campaign.of(name) for name in campaign.candidates}
    places = rank({name: rank_key(view, key) for name, view in views.items()})

    def words(reduction: Reduction, name: str, value: int | Fraction) -> str:
        whole = unit_of(reduction) in ("cells", "instances")
        exactly = as_text(value)
        return counted(reduction, views[name], value) if whole else f"{exactly} ({decimal(value)})" if "/" in exactly else exactly

    rows = ([p.place, plain(p.candidate), *(words(r, p.candidate, v) for r, v in zip(key, p.key, strict=True))] for p in places)
    return table(["place", "candidate", *map(name_of, key)], rows)


def rates(periods: Mapping[str, Tally]) -> Shown:
    """Passed of assessed requests in each group and in all, one row a period."""
    rows = [
        [
            plain(t.period),
            *(f"{x} of {n} = {percent(rate)}" for x, n, rate in zip(t.passed, t.assessed, group_rates(t).values(), strict=True)),
            f"{sum(t.passed)} of {sum(t.assessed)} = {percent(observed_rate(t))}",
        ]
        for t in periods.values()
    ]
    return table(["period", *next(iter(periods.values())).groups, "all groups"], rows)


def gate(decision: Decision) -> Shown:
    """The verdict in one line, whoever is incomplete, and every condition."""
    lines = [headline(decision), *(f"{plain(s.candidate)} is not ranked: {s.coverage}." for s in decision.standings if s.why_unplaced)]
    words, shown = sentence(*lines), conditions(decision.conditions)
    told = words.html.replace("<p>", "<p><strong>", 1).replace("</p>", "</strong></p>", 1)
    return Shown(told + shown.html, f"{words.text}\n{shown.text}")


def class_copy(notebook: str) -> str:
    """A tutorial for a class: the text of a notebook without outputs, solutions, and filled-in guesses and answers."""
    content = json.loads(notebook)
    content["cells"] = [cell for cell in content["cells"] if "solution" not in cell["metadata"].get("tags", [])]
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            blank = re.sub(r"^((?:guess|answer)\w* = )[^#\n]*?(  #.*)?$", r"\1None\2", "".join(cell["source"]), flags=re.MULTILINE)
            cell["source"] = blank.splitlines(keepends=True)
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":  # python -m evalkit.lesson FOLDER, at the root of a checkout
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for path in sorted(Path("notebooks").glob("[0-9][0-9]_*.ipynb")):
        (folder / path.name).write_text(class_copy(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(folder / path.name)
