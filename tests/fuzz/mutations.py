"""Valid files made wrong: by bytes, by numbers, by JSON values, by archive, and from scratch."""

import io
import json
import re
import struct
import warnings
import zipfile
from contextlib import suppress

import numpy as np

EXTREME = (b"0", b"-1", b"1e308", b"-1.7e308", b"5e-324", b"1e400", b"nan", b"inf", b"-inf", b"",
           b"99999999999999999999999", b"4294967296", b"-2147483649", b"1e9", b"0.1", b"NaN",
           b"null", b"true", b"0x10", b"\xff\xfe", b"1970-01-01", b"9999-12-31")  # fmt: skip
VALUES = (None, True, False, 0, -1, 1, 3, 0.5, 1e308, -1e308, 5e-324, 10**9, 10**12, 2**63, 10**40,
          float("nan"), float("inf"), "", "x", "<b>&amp;</b>", "../../etc/passwd", "\u0000",
          "é" * 50, [], {}, [[]], [None], {"a": 1}, [1, 2, 3], {"kind": "line"},
          [10**6, 10**6])  # fmt: skip
NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
TOKENS = (b"<", b">", b"&", b'"', b"'", b",", b";", b"\n", b"\r\n", b"\t", b"\x00", b"\xff",
          b"{", b"}", b"[", b"]", b":", b"/", b"\\", b" ", b"-", b"e", b"=",
          b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
          b"&b;", b"<ScoredEvent>", b"</ScoredEvent>", b"PK\x03\x04", b"PAR1", b"\x93NUMPY",
          b"label", b"u", b"a", b"b", b"nsrrid", b"nsrr_age", *EXTREME)  # fmt: skip


def mutated(content, rng, name=""):
    """The file with one to four faults of the kinds that its name allows."""
    if rng.random() < 0.05:
        return from_scratch(rng)
    kinds = BYTES
    if rng.random() < 0.7:  # a file whose form is right, and what it says wrong
        kinds = CONTENTS.get(name.rpartition(".")[2], BYTES)
    for _ in range(rng.choice((1, 1, 2, 4))):
        content = rng.choice(kinds)(content, rng)
    return content


# --- bytes ---------------------------------------------------------------------------------------


def flip_bits(content, rng):
    made = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 10)) if made else 0):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def set_bytes(content, rng):
    made = bytearray(content)
    if made:
        place = rng.randrange(len(made))
        made[place : place + 8] = rng.choice((b"\x00", b"\xff", b"\x7f")) * rng.choice((1, 4, 8))
    return bytes(made)


def cut_short(content, rng):
    return content[: rng.randrange(len(content) + 1)]


def delete_chunk(content, rng):
    start, stop = _span(content, rng)
    return content[:start] + content[stop:]


def double_chunk(content, rng):
    start, stop = _span(content, rng)
    return content[:stop] + content[start:stop] * rng.choice((1, 1, 5)) + content[stop:]


def swap_chunks(content, rng):
    start, stop = _span(content, rng)
    middle = (start + stop) // 2
    return content[:start] + content[middle:stop] + content[start:middle] + content[stop:]


def insert_token(content, rng):
    place = rng.randrange(len(content) + 1)
    return content[:place] + rng.choice(TOKENS) + content[place:]


def extreme_number(content, rng):
    """One of the numbers in the text is another, or none."""
    found = list(NUMBER.finditer(content[:20_000]))
    if not found:
        return insert_token(content, rng)
    start, stop = rng.choice(found).span()
    made = rng.choice(EXTREME)
    if rng.random() < 0.5:  # of the same width, as a fixed header needs it
        made = made[: stop - start].ljust(stop - start)
    return content[:start] + made + content[stop:]


def from_scratch(rng):
    if rng.random() < 0.3:
        return rng.randbytes(rng.choice((0, 1, 8, 300)))
    return b"".join(rng.choice(TOKENS) for _ in range(rng.choice((0, 1, 5, 60))))


def _span(content, rng):
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.choice((1, 2, 8, 64, 512)))


BYTES = (flip_bits, set_bytes, cut_short, delete_chunk, double_chunk, swap_chunks, insert_token)


# --- JSON ----------------------------------------------------------------------------------------


def wrong_json(content, rng):
    """One value, somewhere, is another, is gone, or is doubled; of JSON lines, in one line."""
    try:
        text = content.decode()
        lines = text.splitlines() if text.count("\n{") else [text]
        number = rng.randrange(len(lines))
        words = json.loads(lines[number])
    except (ValueError, RecursionError):
        return insert_token(content, rng)
    lines[number] = json.dumps(wrong_value(words, rng))
    if rng.random() < 0.02:
        lines[number] = "[" * 100_000
    return "\n".join(lines).encode()


def wrong_value(words, rng):
    if isinstance(words, dict) and words and rng.random() < 0.95:
        key = rng.choice(list(words))
        fate = rng.random()
        if fate < 0.1:
            return {k: v for k, v in words.items() if k != key}
        if fate < 0.15:
            return {**words, "surplus": words[key]}
        return {**words, key: wrong_value(words[key], rng)}
    if isinstance(words, list) and words and rng.random() < 0.9:
        place = rng.randrange(len(words))
        fate = rng.random()
        if fate < 0.15:
            return words[:place] + words[place + 1 :]
        if fate < 0.25:
            return words[:place] + [words[place]] * 2 + words[place + 1 :]
        return [*words[:place], wrong_value(words[place], rng), *words[place + 1 :]]
    return rng.choice(VALUES)


# --- archives and tensors ------------------------------------------------------------------------


def wrong_header(content, rng):
    """A safetensors file whose own header, or the JSON of cida in it, says something else."""
    try:
        length = int.from_bytes(content[:8], "little")
        header = dict(json.loads(content[8 : 8 + length]))
        body = content[8 + length :]
        told = header["__metadata__"]["cida"].encode()
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return flip_bits(content, rng)
    if rng.random() < 0.75:
        header["__metadata__"] = {"cida": wrong_json(told, rng).decode(errors="replace")}
    else:
        names = [name for name in header if name != "__metadata__"]
        if names:
            name = rng.choice(names)
            fate = rng.random()
            if fate < 0.5 and isinstance(header[name], dict) and "shape" in header[name]:
                shape = header[name]["shape"]
                shape = shape if isinstance(shape, list) else [0]
                header[name]["shape"] = rng.choice(
                    (
                        shape[::-1],
                        [1, *shape],
                        shape[1:],
                        [*shape[1:], *shape[:1]],
                        wrong_value(shape, rng),
                    )
                )
            elif fate < 0.6 and isinstance(header[name], dict):
                header[name]["dtype"] = rng.choice(
                    ("F64", "F32", "I32", "U8", "BOOL", "F16", "I64")
                )
            elif fate < 0.8:
                other = rng.choice(names)
                header[name], header[other] = header[other], header[name]
            elif fate < 0.9:
                header["renamed"] = header.pop(name)
            else:
                header = wrong_value(header, rng)
    told = json.dumps(header).encode()
    return struct.pack("<Q", len(told)) + told + body


def wrong_member(content, rng):
    """An npz file with a fault in one of its arrays, as a valid archive again."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return flip_bits(content, rng)
    if not members:
        return content
    name = rng.choice(list(members))
    kinds = (*BYTES, _other_dtype, _other_dtype, extreme_number)
    members[name] = rng.choice(kinds)(members[name], rng)
    if rng.random() < 0.1:
        members[rng.choice(("y.npy", "../X.npy", "X", "u.npy/"))] = members.pop(name)
    made = io.BytesIO()
    packing = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(made, "w", packing) as archive:
        for name, part in members.items():
            archive.writestr(name, part)
    return made.getvalue()


def other_column(content, rng):
    """A valid Parquet file with a column of another kind, or without one, or with no row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(content))
    except Exception:
        return flip_bits(content, rng)
    place = rng.randrange(len(table.column_names)) if table.column_names else None
    if place is None or rng.random() < 0.05:
        table = table.slice(0, rng.choice((0, 1, 2)))
    elif rng.random() < 0.1:
        table = table.remove_column(place)
    else:
        made = odd_values(rng, len(table))
        try:
            cells = pa.array(made, from_pandas=rng.random() < 0.5)
            kind = rng.choice((None, pa.decimal128(38, 3), pa.duration("ns"), pa.time64("us"),
                               pa.timestamp("s"), pa.timestamp("ns", "Europe/Paris"),
                               pa.large_string(), pa.string_view(), pa.binary(), pa.float16(),
                               pa.date64()))  # fmt: skip
            cells = cells if kind is None else cells.cast(kind)
            cells = cells.dictionary_encode() if rng.random() < 0.2 else cells
        except (pa.ArrowException, TypeError, ValueError):
            cells = pa.array([rng.choice(([], [1], {"a": 1}, None, b"x"))] * len(table))
        name = table.column_names[place]
        if rng.random() < 0.1:
            name = rng.choice((*table.column_names, "<b>new</b>", ""))
        table = table.set_column(place, name, cells)
    file = io.BytesIO()
    try:
        pq.write_table(table, file)
    except (pa.ArrowException, ValueError, TypeError):
        return flip_bits(content, rng)
    return file.getvalue()


def other_array(content, rng):
    """A valid npz file with another array in the place of one."""
    try:
        with np.load(io.BytesIO(content)) as archive:
            arrays = {k: archive[k] for k in archive if isinstance(archive[k], np.ndarray)}
    except Exception:
        return flip_bits(content, rng)
    name = rng.choice(("X", "y", "u"))
    rows = len(arrays["u"]) if "u" in arrays and arrays["u"].ndim else 60
    made = odd_values(rng, rows if rng.random() < 0.95 else rng.choice((0, 1, 2 * rows)))
    shape = rng.choice(((-1,), (-1,), (-1, 1), (-1, 2), (-1, 2, 2), (-1, 4, 4), (1, 1, -1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if made.dtype.kind in "fiu" and rng.random() < 0.3:
            made = made.astype(
                rng.choice(("f2", "f4", "i1", "u8", "?", "c16", "M8[D]", "m8[s]", "U4"))
            )
    with suppress(ValueError):
        made = np.repeat(made, -int(np.prod(shape)), axis=0).reshape(shape)
    arrays[name] = made
    if rng.random() < 0.05:
        del arrays[name]
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def odd_values(rng, rows):
    """A column of odd values, all of one kind."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    kind = rng.choice(
        ("extreme", "huge", "whole", "same", "nothing", "texts", "days", "yes", "line")
    )
    if kind == "extreme":
        return numbers.choice(
            [0, -0.0, 1.7e308, -1.7e308, 5e-324, np.nan, np.inf, -np.inf, 1], rows
        )
    if kind == "huge":
        return numbers.normal(size=rows) * 10.0 ** rng.choice((-300, -40, 18, 38, 150, 300))
    if kind == "whole":
        return numbers.integers(-(2**63), 2**63 - 1, rows)
    if kind == "same":
        return np.full(rows, rng.choice((0.0, 1e308, np.nan)))
    if kind == "nothing":
        return np.full(rows, np.nan)
    if kind == "texts":
        return numbers.choice(["", "a", "<b>", "1e5", "=1+1", "\x00", "é" * 9, "NA", "true"], rows)
    if kind == "days":
        return numbers.integers(-(10**6), 10**6, rows).astype("M8[D]")
    if kind == "yes":
        return numbers.random(rows) < 0.5
    return np.arange(rows, dtype=float)


def _other_dtype(content, rng):
    """The header of an npy file names another type or shape for the same bytes."""
    kinds = (b"'<i8'", b"'<u8'", b"'<f4'", b"'<c16'", b"'<M8[D]'", b"'|O'", b"'<U2'", b"'|b1'",
             b"'<m8[s]'", b"'|S8'", b"'|V8'", b"'<f2'", b"[('a', '<f8')]",
             b"'<U99999999'")  # fmt: skip
    shapes = (b"(1, 60)", b"(60, 1)", b"()", b"(0,)", b"(60, 2, 2)", b"(2, 30)",
              b"(1000000000000,)", b"(60, 0)", b"(-1,)", b"(30, 2)", b"(120,)",
              b"(60, 2, 1)")  # fmt: skip
    if rng.random() < 0.5:
        return re.sub(rb"'[<|>][a-zA-Z]\d+'", lambda _: rng.choice(kinds), content, count=1)
    return re.sub(rb"\([\d, ]*\)", lambda _: rng.choice(shapes), content, count=1)


CONTENTS = {
    "json": (wrong_json,),
    "jsonl": (wrong_json,),
    "safetensors": (wrong_header,),
    "npz": (other_array, other_array, wrong_member),
    "parquet": (other_column,),
    "csv": (extreme_number,),
    "xml": (extreme_number, insert_token),
    "edf": (extreme_number,),
    "npy": (_other_dtype,),
}
