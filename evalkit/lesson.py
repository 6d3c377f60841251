"""What a tutorial says back to its reader: predictions, checks by a second route, exercises, and the library's own source.

``assert`` vanishes under ``python -O``, so notebooks call ``expect`` and ``check``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from fractions import Fraction
from html import escape

import numpy as np

from .errors import EvalkitError, quote
from .show import Shown, sentence

__all__ = ["check", "expect", "predict", "reveal", "source"]


def predict(guess: object, options: Sequence[str]) -> Shown:
    """Take a guess before the answer is shown; none is fine, another word is not.

    >>> predict(None, ["CLAUDE", "MERGE"])
    No guess yet. Set guess to 'CLAUDE' or 'MERGE' and run again, or read on.
    """
    choices = " or ".join(repr(option) for option in options)
    if guess is None:
        return sentence(f"No guess yet. Set guess to {choices} and run again, or read on.")
    if guess not in options:
        return sentence(f"{quote(guess)} is not one of the answers: {choices}.")
    return sentence(f"Your guess: {guess}. Run the next cells to see.")


def reveal(guess: object, answer: str, because: str) -> Shown:
    """The answer, beside the guess.

    >>> reveal("MERGE", "CLAUDE", "2 instances against 1")
    You guessed MERGE; the answer is CLAUDE: 2 instances against 1.
    """
    told = f"The answer is {answer}" if guess is None else f"You guessed {answer}, and so it is" if guess == answer else f"You guessed {guess}; the answer is {answer}"
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
    return Shown(f"<pre><code>{escape(text)}</code></pre>", text)
