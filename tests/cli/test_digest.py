"""A digest is one line for a reader and valid JSON for a program, whatever the array holds."""

import json

import ml_dtypes
import numpy as np

from refcomp.cli.digest import digest, digest_to_text, to_json


def test_line_tells_dtype_shape_extremes_and_first_values() -> None:
    entry = digest("C", np.arange(8, dtype=np.float32).reshape(2, 4) / 2)
    assert digest_to_text(entry) == "C: f32[2, 4]  min 0  max 3.5  first 0 0.5 1 1.5 2 2.5 ..."


def test_integers_are_told_exactly() -> None:
    entry = digest("C", np.array([2**63 + 1, 1], np.uint64))
    assert entry["max"] == 9223372036854775809
    assert digest_to_text(entry).endswith("first 9223372036854775809 1")


def test_nan_is_counted_and_left_out_of_the_extremes() -> None:
    entry = digest("C", np.array([np.nan, 1, np.inf], np.float32))
    assert (entry["nans"], entry["min"], entry["max"]) == (1, 1.0, "inf")
    assert json.loads(json.dumps(entry, allow_nan=False))["first"] == ["nan", 1.0, "inf"]
    assert "1 NaN" in digest_to_text(entry | {"max": 1.0, "first": [1.0]})


def test_text_of_values_that_json_lacks() -> None:
    entry = digest("C", np.array([np.nan], np.float64))
    assert (entry["min"], entry["max"]) == (None, None)
    assert digest_to_text(entry) == "C: f64[1]  1 NaN  first nan"


def test_empty_and_small_and_foreign_types() -> None:
    assert digest_to_text(digest("C", np.zeros((0, 3), np.int8))) == "C: i8[0, 3]  empty"
    scalar = digest("C", np.array(True))
    assert digest_to_text(scalar) == "C: bool[]  min True  max True  first True"
    bf16 = digest("C", np.array([1.5], ml_dtypes.bfloat16))
    assert digest_to_text(bf16) == "C: bf16[1]  min 1.5  max 1.5  first 1.5"


def test_numbers_become_plain() -> None:
    assert to_json(np.float32(0.5)) == 0.5
    assert to_json(np.float64("-inf")) == "-inf"
    assert type(to_json(np.int64(3))) is int
