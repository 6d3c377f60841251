"""Mutations that know what they change: a value of a JSON text, a cell of a table, a member of an archive, a word of a parameter.

Raw bytes would end at the first gate. One mutation in five is raw all the same, of the whole input.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from random import Random
from typing import Any

import atheris
import zstandard

Change = Callable[[bytes, Random], bytes]
# What stands where a tool, a spreadsheet or a person wrote something else.
# fmt: off
NUMBERS = ["0", "1", "-1", "2", "1.0", "0.5", "-0", "1e0", "1e5", "1e400", "1e-400", "1e999999999999999999999", "0.1", "1E+2", "NaN", "Infinity",
           "-Infinity", "9223372036854775808", "0.9999999", "0.30000000000000004", "1" * 25, "7" * 5000]
TEXTS = ["pass", "fail", "absent", "error", "timeout", "cancelled", "ungraded", "C", "I", "P", "N", "true", "false", "1/2", "01", "1_0", "٣",
         "a.b", "*", "/", "|", "=", ";", "é", "\0", "\ufeff", "\u202e", "\x1b[31m", "<b>", "", " ", "a ", "\n", "\r", '"', "x" * 300, "=1+1",
         "None", "null", "nan", ">= 0.5", "== 1", "order", "{}", "\U0001f600"]
# fmt: on
OTHERS = ["null", "true", "false", "[]", "{}", "[[]]", '"\\ud800"', "[" * 2000 + "]" * 2000, '{"a":1,"a":2}']


class Raw(str):
    """A JSON number as it stands, or any other JSON text."""

    __slots__ = ()


class Pairs(list[Any]):
    """A JSON object whose keys may come twice."""


def _written(value: Any) -> str:
    if isinstance(value, Raw):
        return value
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{_written(inner)}" for key, inner in value) + "}"
    return "[" + ",".join(map(_written, value)) + "]" if isinstance(value, list) else json.dumps(value)


def _places(root: list[Any]) -> tuple[list[tuple[list[Any], int]], list[tuple[list[Any], int]]]:
    """Where a value stands, and where an item of a list or an object does."""
    values, items, left = [(root, 0)], [], [root[0]]
    while left:
        holder = left.pop()
        for at, inner in enumerate(holder if isinstance(holder, list) else ()):
            items.append((holder, at))
            values.append((inner, 1) if isinstance(holder, Pairs) else (holder, at))
            left.append(inner[1] if isinstance(holder, Pairs) else inner)
    return values, items


def _json_once(root: list[Any], random: Random) -> None:
    values, items = _places(root)
    (holder, at), (other, there) = random.choice(values), random.choice(values)
    kind = random.randrange(10)
    if kind < 3:
        holder[at] = Raw(random.choice((*NUMBERS, *OTHERS)))
    elif kind < 5:
        holder[at] = random.choice(TEXTS)
    elif kind == 5:
        holder[at] = deepcopy(other[there])
    elif kind == 6 and type(holder[at]) is str:
        holder[at] = atheris.Mutate(holder[at].encode("utf-8", "replace"), 200).decode("utf-8", "replace")
    elif items:
        holder, at = random.choice(items)
        if kind < 8:
            del holder[at]
        elif kind == 8:
            holder.insert(random.choice((0, at)), deepcopy(holder[at]))  # in an object, a key twice
        elif isinstance(holder, Pairs):
            holder[at][0] = random.choice((*TEXTS, *(pair[0] for pair in holder)))


def _one_json(data: bytes, random: Random) -> bytes:
    root = [json.loads(data, object_pairs_hook=lambda items: Pairs(map(list, items)), parse_float=Raw, parse_int=Raw, parse_constant=Raw)]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        _json_once(root, random)
    return _written(root[0]).encode()


def of_json(data: bytes, random: Random) -> bytes:
    """A JSON text, or one line of JSON Lines."""
    try:
        return _one_json(data, random)
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
        at = random.randrange(len(lines))
        kind = random.randrange(8)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, random.choice(lines))
        else:
            lines[at] = _one_json(lines[at], random)
        return b"\n".join(lines)


def of_table(data: bytes, random: Random) -> bytes:
    """Cells, columns and rows of a CSV or TSV."""
    mark = b"\t" if b"\t" in data and b"," not in data.split(b"\n", 1)[0] else b","
    rows = [line.split(mark) for line in data.split(b"\n")]
    for _ in range(random.choice((1, 1, 2, 4))):
        row = random.choice(rows)
        at, kind = random.randrange(len(row)), random.randrange(12)
        if kind < 3:
            row[at] = random.choice((*NUMBERS, *TEXTS)).encode()
        elif kind < 5:
            row[at] = random.choice(random.choice(rows))
        elif kind == 5:
            row[at] = atheris.Mutate(row[at], 100)
        elif kind == 6:
            rows.insert(random.randrange(len(rows) + 1), list(row))
        elif kind == 7 and len(rows) > 1:
            rows.remove(row)
        elif kind == 8:
            row[at : at + 1] = random.choice(([], [row[at], b""], [b'"' + row[at] + b'"']))
            row or row.append(b"")
        elif kind == 9:  # a column, in all rows
            for each in rows:
                if at < len(each):
                    each.insert(random.choice((0, at)), each[at] if random.random() < 0.5 else b"1")
        elif kind == 10:
            name = random.choice(b"group cluster detail cost grouping_rule grader_version case_set".split())
            for number, each in enumerate(rows):
                each.append(random.choice((b"1", b"x", b"")) if number else name)
        else:
            mark = random.choice((b",", b",", b"\t", b";", b"|"))
    return random.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r")).join(mark.join(row) for row in rows)


def of_archive(data: bytes, random: Random) -> bytes:
    """The JSON of one member of a zip; its name, its method, its place or its presence."""
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        members = [(info.filename, _unpacked(data, whole, info)) for info in whole.infolist()]
    at = random.randrange(len(members))
    name, content = members[at]
    kind = random.randrange(12)
    if kind == 0:
        del members[at]
    elif kind == 1:
        members.append((random.choice((name, "samples/x.json", "../x.json", "header.json", "_journal/start.json")), content))
    elif kind == 2:
        members[at] = (random.choice(members)[0], content)
    else:
        members[at] = (name, of_json(content, random))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as target:
        for name, content in dict(members).items() if random.random() < 0.9 else members:
            target.writestr(name, content)
    return made.getvalue()


def _unpacked(data: bytes, whole: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.file_size > 100_000:
        raise ValueError("too large")
    if info.compress_type != 93:
        return whole.read(info)
    start = info.header_offset + 30 + int.from_bytes(data[info.header_offset + 26 : info.header_offset + 28], "little")
    start += int.from_bytes(data[info.header_offset + 28 : info.header_offset + 30], "little")
    return zstandard.ZstdDecompressor().decompress(data[start : start + info.compress_size], max_output_size=100_000)


def of_packed(data: bytes, random: Random) -> bytes:
    """Another level, several frames, a changed byte, or an end that is missing."""
    inner = atheris.Mutate(data[20:60], 60) if random.random() < 0.3 else random.choice(TEXTS).encode() * random.choice((1, 100))
    packed = zstandard.compress(inner) if random.random() < 0.5 else zlib.compress(inner, wbits=31)
    return random.choice((packed, data + packed, packed + data, packed[: random.randrange(len(packed) + 1)], atheris.Mutate(packed, 4096)))


def of_text(data: bytes, random: Random) -> bytes:
    """A word of ``name=value; name=value`` lines for another."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    words = lines[at].replace(b";", b" ; ").replace(b"=", b" = ").replace(b":", b" : ").split(b" ")
    pool = [word for line in lines for word in line.replace(b";", b" ").replace(b"=", b" ").split(b" ")]
    place, kind = random.randrange(len(words)), random.randrange(6)
    if kind < 2:
        words[place] = random.choice((*NUMBERS, *TEXTS)).encode()
    elif kind == 2:
        words[place] = random.choice(pool)
    elif kind == 3:
        words.insert(place, random.choice(pool))
    elif kind == 4:
        words[place] = atheris.Mutate(words[place], 50)
    else:
        lines.insert(at, random.choice(lines))
        at += 1
    lines[at] = b" ".join(words).replace(b" = ", b"=").replace(b" ; ", b"; ").replace(b" : ", b": ")
    return b"\n".join(lines)


def by(change: Change, seeds: Sequence[bytes]) -> Callable[[bytes, int, int], bytes]:
    """A mutator as atheris calls it; one time in four it starts from a seed, since most of what it kept is refused early."""

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        data = random.choice(seeds) if random.random() < 0.25 else data
        if data and random.random() < 0.8:
            with suppress(Exception):  # what is no longer JSON, a table or a zip is changed as bytes
                made = change(data, random)
                if len(made) <= most and made != data:
                    return made
        return atheris.Mutate(data, most)

    return mutated
