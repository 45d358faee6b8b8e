"""A summary of an array: one line for a reader, JSON for a program."""

from __future__ import annotations

import json
import math
from typing import TypeAlias, TypedDict

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.runtime.device import HostArray

# A number in JSON. JSON has neither NaN nor infinities: these are the texts "nan" and "inf".
JsonNumber: TypeAlias = bool | int | float | str

_MAX_SHOWN = 6


class Digest(TypedDict):
    """The summary as JSON."""

    name: str
    dtype: str
    shape: list[int]
    min: JsonNumber | None  # NaN left out; None if no number is left
    max: JsonNumber | None
    nans: int  # how many elements are NaN
    first: list[JsonNumber]  # the first elements in row-major order


def digest(name: str, array: HostArray) -> Digest:
    """Return the summary of `array`, of any shape and any dtype that refcomp knows."""
    if array.dtype == object:
        return _digest_of_strings(name, array)
    dtype = as_dtype(array.dtype)
    values = array.reshape(-1)
    numbers = values
    if dtype.is_float:
        # numpy has no minimum of bfloat16; f64 holds each narrower float exactly.
        values = values.astype(np.float64)
        numbers = values[~np.isnan(values)]
    return {
        "name": name,
        "dtype": str(dtype),
        "shape": list(array.shape),
        "min": to_json(numbers.min()) if numbers.size else None,
        "max": to_json(numbers.max()) if numbers.size else None,
        "nans": int(values.size - numbers.size),
        "first": [to_json(value) for value in values[:_MAX_SHOWN]],
    }


def _digest_of_strings(name: str, array: HostArray) -> Digest:
    return {
        "name": name,
        "dtype": "string",
        "shape": list(array.shape),
        "min": None,
        "max": None,
        "nans": 0,
        "first": [json.dumps(str(one)) for one in array.reshape(-1)[:_MAX_SHOWN]],
    }


def to_json(value: np.generic | JsonNumber) -> JsonNumber:
    """Return a number for JSON."""
    plain: JsonNumber = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return str(plain)
    return plain


def digest_to_text(entry: Digest) -> str:
    """Return one line, such as `C: f32[2, 4]  min 0  max 7  first 0 1 2 3 4 5 ...`."""
    dims = ", ".join(map(str, entry["shape"]))
    words = [f"{entry['name']}: {entry['dtype']}[{dims}]"]
    if not entry["first"]:
        return f"{words[0]}  empty"
    if entry["min"] is not None and entry["max"] is not None:
        words.append(f"min {number_to_text(entry['min'])}")
        words.append(f"max {number_to_text(entry['max'])}")
    if entry["nans"]:
        words.append(f"{entry['nans']} NaN")
    first = " ".join(map(number_to_text, entry["first"]))
    more = " ..." if math.prod(entry["shape"]) > len(entry["first"]) else ""
    return "  ".join([*words, f"first {first}{more}"])


def number_to_text(value: JsonNumber) -> str:
    """Return a number of JSON for a reader."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
