"""What travels between the driver and the sandbox: JSON for the shape of a value, .npy for arrays.

Nothing is unpickled, and nothing is built that the sizes stated do not pay for. Both sides load
this file; it needs torch, numpy and the standard library.
"""

from __future__ import annotations

import io
import json
import os
import select
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

MOST, HEAD = 32 << 20, 2 << 20  # bytes of a message, and of its JSON
DTYPES = {
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
    "complex64", "complex128",
}  # fmt: skip


class Broken(Exception):
    """The other side said something that it could not have said if it kept to the protocol."""


class Ended(Broken):
    """The other side has gone."""


class Late(Broken):
    """The other side has not answered in time."""


# values


def pack(value: Any, blobs: list[bytes], other: Callable[[Any], Any]) -> Any:
    """A value as JSON, its arrays appended to `blobs`; what is not plain goes through `other`."""
    if value is None or isinstance(value, bool | str):
        return value
    if type(value) is int:
        return {"int": str(value)}
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, torch.Tensor):
        plain = torch.Tensor.detach(value).as_subclass(torch.Tensor).cpu().resolve_conj()
        name = str(plain.dtype).removeprefix("torch.")
        array = (plain.float() if name == "bfloat16" else plain.resolve_neg()).numpy()
        extra = other(value) if value.requires_grad else None
        return {"tensor": _array(array, blobs), "dtype": name, "grad": extra}
    if isinstance(value, np.ndarray | np.generic) and str(value.dtype) in DTYPES:
        kind = "array" if isinstance(value, np.ndarray) else "number"
        return {kind: _array(np.asarray(value), blobs)}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [pack(x, blobs, other) for x in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: pack(x, blobs, other) for key, x in value.items()}}
    return other(value)


def _array(array: np.ndarray, blobs: list[bytes]) -> int:
    out = io.BytesIO()
    np.save(out, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    blobs.append(out.getvalue())
    return len(blobs) - 1


def unpack(made: Any, blobs: list[bytes], other: Callable[[dict[str, Any]], Any]) -> Any:
    """The value that `pack` took apart; Broken where it could not have come from there."""
    if made is None or isinstance(made, bool | str):
        return made
    if not isinstance(made, dict) or not made:
        raise Broken("a value is no object")
    kind, inside = next(iter(made.items()))
    if kind == "int":
        return int(inside)
    if kind == "float":
        return float.fromhex(inside)
    if kind == "tensor":
        plain = torch.from_numpy(load(blobs[inside]).copy())
        plain = plain.bfloat16() if made.get("dtype") == "bfloat16" else plain
        return other({"grad": made["grad"], "of": plain}) if made.get("grad") else plain
    if kind in ("array", "number"):
        array = load(blobs[inside]).copy()
        return array if kind == "array" else array[()]
    if kind in ("list", "tuple"):
        values = [unpack(x, blobs, other) for x in inside]
        return values if kind == "list" else tuple(values)
    if kind == "dict":
        return {str(key): unpack(x, blobs, other) for key, x in inside.items()}
    return other(made)


def load(blob: bytes) -> np.ndarray:
    """An array from the bytes of a .npy file, without pickle and without trusting its header."""
    file = io.BytesIO(blob)
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            raise Broken("an array is not of .npy's version 1.0")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    except (ValueError, SyntaxError, TypeError, EOFError) as error:
        raise Broken(f"an array cannot be read: {error}") from None
    if str(dtype) not in DTYPES or fortran or len(shape) > 16:
        raise Broken(f"an array of {dtype} is not accepted")
    count = 1
    for n in shape:
        count *= int(n)
    if count < 0 or count * dtype.itemsize != len(blob) - file.tell():
        raise Broken(f"an array says {shape} and holds {len(blob) - file.tell()} bytes")
    return np.frombuffer(blob, dtype, count, file.tell()).reshape(shape)


# messages


def send(fd: int, head: dict[str, Any], blobs: list[bytes], until: float | None = None) -> None:
    """Write one message: the length of its head, the head, then each array after its length."""
    text = json.dumps(head).encode()
    parts = [text, *blobs]
    if sum(map(len, parts)) > MOST or len(text) > HEAD:
        raise Broken(f"more than {MOST >> 20} MB in one message")
    data = memoryview(
        struct.pack(">I", len(parts)) + b"".join(struct.pack(">I", len(p)) + p for p in parts)
    )
    while data:
        if until is not None:
            _wait([], [fd], until)
        try:
            data = data[os.write(fd, data[: 1 << 16]) :]
        except (BrokenPipeError, OSError):
            raise Ended("it has ended") from None


def receive(fd: int, until: float | None = None) -> tuple[dict[str, Any], list[bytes]]:
    """Read one message; Late after `until` (of time.monotonic), Broken if it is none."""

    def exactly(count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            if until is not None:
                _wait([fd], [], until)
            piece = os.read(fd, min(1 << 20, count - len(found)))
            if not piece:
                raise Ended("it has ended")
            found += piece
        return bytes(found)

    (count,) = struct.unpack(">I", exactly(4))
    if not 1 <= count <= 10_000:
        raise Broken(f"a message of {count} parts")
    parts: list[bytes] = []
    left = MOST
    for _ in range(count):
        (size,) = struct.unpack(">I", exactly(4))
        left -= size
        if left < 0 or (not parts and size > HEAD):
            raise Broken(f"more than {MOST >> 20} MB in one message")
        parts.append(exactly(size))
    try:
        head = json.loads(parts[0])
    except (ValueError, RecursionError) as error:
        raise Broken(f"a message is not JSON: {error}") from None
    if not isinstance(head, dict):
        raise Broken("a message is no object")
    return head, parts[1:]


def _wait(reads: list[int], writes: list[int], until: float) -> None:
    left = until - time.monotonic()
    if left <= 0 or not any(select.select(reads, writes, [], left)):
        raise Late("no answer in time")
