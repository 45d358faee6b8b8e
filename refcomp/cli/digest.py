"""A short account of an array: for a reader one line, for a program JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from refcomp.foundation.dtype import as_dtype

_SHOWN = 6


def digest(name: str, array: Any) -> dict[str, Any]:
    """dtype, shape, least and greatest value, number of NaNs and the first values, as JSON.

    `min` and `max` leave NaN out and are None where nothing is left.
    """
    dtype = as_dtype(array.dtype)
    flat = array.reshape(-1)
    values = flat.astype(np.float64) if dtype.is_float else flat
    numbers = values[~np.isnan(values)] if dtype.is_float else values
    return {
        "name": name,
        "dtype": str(dtype),
        "shape": list(array.shape),
        "min": to_json(numbers.min()) if numbers.size else None,
        "max": to_json(numbers.max()) if numbers.size else None,
        "nans": int(values.size - numbers.size),
        "first": [to_json(value) for value in values[:_SHOWN]],
    }


def to_json(value: Any) -> Any:
    """A numpy number as JSON has it; NaN and the infinities, which JSON lacks, as text."""
    plain = value.item() if isinstance(value, np.generic) else value
    return (
        str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain
    )


def digest_to_text(entry: dict[str, Any]) -> str:
    """One line on what `digest` returned."""
    dims = ", ".join(map(str, entry["shape"]))
    head = f"{entry['name']}: {entry['dtype']}[{dims}]"
    if not entry["first"]:
        return f"{head}  empty"
    first = " ".join(map(number_to_text, entry["first"]))
    more = " ..." if math.prod(entry["shape"]) > len(entry["first"]) else ""
    nans = f"  {entry['nans']} NaN" if entry["nans"] else ""
    if entry["min"] is None:
        return f"{head}{nans}  first {first}{more}"
    extremes = f"min {number_to_text(entry['min'])}  max {number_to_text(entry['max'])}"
    return f"{head}  {extremes}{nans}  first {first}{more}"


def number_to_text(value: Any) -> str:
    """What `to_json` returned, for a reader."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
