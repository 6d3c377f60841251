"""promptfoo results: JSON (results version 3) or JSON Lines.

One row per provider, prompt and test. ``success`` is the verdict: ``score`` is a weighted mean that may be any number.
Nothing names a repeat, since ``testIdx`` keeps counting; repeats are numbered in its order within equal provider, prompt, test.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from ..campaign import CODE, FAIL, PASS
from ..errors import InputError, listing, quote
from ._json import Lines, name, number, part, refuse, take, text
from ._rows import Facts, Format, Options, Row, Rows, has, n_of

_ERROR = 2  # failureReason: 0 none, 1 an assertion, 2 an error
_content = json.JSONEncoder(sort_keys=True, default=str).encode


def rows(_file: Path, value: Any, options: Options) -> Rows:
    """All providers of one evaluation."""
    if isinstance(value, Lines):
        entries, results = list(zip(value.numbers, value, strict=True)), {}
    else:
        results = take(value, "results")
        if results.get("version") != 3:
            refuse(results.get("version"), "results.version", "3, as promptfoo 0.90 and later write it")
        listed = take(results, "results")
        entries = list(enumerate(listed, 1)) if isinstance(listed, list) else refuse(listed, "results.results", "a list of rows")
    entries.sort(key=lambda entry: _index(entry[1], "testIdx", entry[0]))
    asked = [(_provider(row, place), _index(row, "promptIdx", place)) for place, row in entries]
    prompts = Counter(provider for provider, _ in set(asked))
    tests = [_test(row) for _, row in entries]
    names = _names(tests)
    repeats: Counter[tuple[str, str]] = Counter()
    found, cached = [], []
    for (place, row), (provider, prompt), test in zip(entries, asked, tests, strict=True):
        candidate = provider if prompts[provider] == 1 else f"{provider}, prompt {prompt}"
        instance = names[test]
        repeats[candidate, instance] += 1
        repetition = str(repeats[candidate, instance])
        if part(row, "response", dict).get("cached") is True:
            cached.append(f"{candidate} {instance} (repetition {repetition})")
        code, detail = _outcome(row, place)
        score = number(row.get("score"), "score", place) if code in (PASS, FAIL) else None
        group = _group(row, options.group, place)
        found.append(Row(candidate, instance, repetition, code, place, detail, group, test[1], {"score": score}))
    if not found:
        raise InputError("no rows", "the rows of an evaluation", "check that the run wrote its results")
    notes = [f"{n_of(len(cached), 'row')} from the cache, which repeats one answer: {listing(cached)}"] if cached else []
    facts = Facts(text(value, "metadata", "promptfooVersion"), created=text(results, "timestamp"), scorer="success",
                  notes=(*notes, *_totals(results, found)))  # fmt: skip
    return Rows(facts, found)


def _index(row: Any, key: str, place: int) -> int:
    value = take(row, key, place)
    return value if type(value) is int else refuse(value, key, "a whole number", place)


def _provider(row: Any, place: int) -> str:
    provider = take(row, "provider", place)
    return text(provider, "label") or name(provider, "id", place)


def _test(row: Any) -> tuple[str, str]:
    """What makes a test itself: its description, variables and assertions."""
    case = part(row, "testCase", dict)
    content = [row.get("vars", case.get("vars")), case.get("assert")]
    return text(case, "description") or text(row, "description"), _content(content)


def _names(tests: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A readable id where it is unique: the description, else the variables, else with a digest."""
    different = dict.fromkeys(tests)
    short = {test: test[0] or json.dumps(json.loads(test[1])[0], ensure_ascii=False)[:120] for test in different}
    times = Counter(short.values())
    return {test: s if times[s] == 1 else f"{s} #{hashlib.sha256(test[1].encode()).hexdigest()[:8]}" for test, s in short.items()}


def _outcome(row: dict[str, Any], place: int) -> tuple[int, str]:
    success, reason = take(row, "success", place), row.get("failureReason", 0)
    if type(success) is not bool:
        refuse(success, "success", "true or false", place)
    if success:
        return PASS, ""
    if reason == _ERROR:
        return CODE["error"], text(row, "error")[:500] or "error"
    if reason in (0, 1):
        return FAIL, ""
    return refuse(reason, "failureReason", "0, 1 or 2", place)


def _group(row: dict[str, Any], key: str, place: int) -> str | None:
    for metadata in (part(row, "metadata", dict), part(part(row, "testCase", dict), "metadata", dict)):
        if (key or "group") in metadata:
            return name(metadata, key or "group", place)
    if key:
        raise InputError(f"no metadata {quote(key)}", "that key in the metadata of every test", "choose another group", row=place)
    return None


def _totals(results: dict[str, Any], found: list[Row]) -> list[str]:
    """Where the file's own counts are not those of its rows."""
    stats = part(results, "stats", dict)
    counts = {"successes": PASS, "failures": FAIL, "errors": CODE["error"]}
    have = {key: sum(row.code == code for row in found) for key, code in counts.items()}
    return [f"the file counts {stats[key]} {key}; its rows give {n}" for key, n in have.items() if key in stats and stats[key] != n]


FORMAT = Format(
    "promptfoo results",
    "results.results, or lines with promptIdx, testIdx and success",
    lambda value: (
        (has(value, "results") and has(value["results"], "results"))
        or (isinstance(value, Lines) and has(value[0], "promptIdx", "testIdx", "success"))
    ),
    rows,
    ("group",),
)
