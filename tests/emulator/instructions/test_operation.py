"""Rows of the table, as they are written."""

import numpy as np
import pytest

from refcomp.emulator.generations.generation import (
    ARCHITECTURES,
    GENERATIONS,
    PACKED,
    SCALAR,
    VECTOR,
)
from refcomp.emulator.instructions.operation import operation
from refcomp.emulator.machine.arrays import MASKS, NUMPY


def test_a_signature_names_results_sources_and_what_is_implicit():
    row = operation("f64 mask = f64 u32; vcc", np.add, is_approximate=True)
    assert (row.results, row.sources, row.implicit) == (("f64", "mask"), ("f64", "u32"), ("vcc",))
    assert row.is_approximate and not row.keeps_high and row.spread is None


def test_every_row_is_made_of_known_types():
    rows = [*VECTOR.values(), *SCALAR.values(), *(row.half for row in PACKED.values())]
    kinds = {kind for row in rows for kind in (*row.results, *row.sources)}
    assert kinds <= {*NUMPY, "mask", "scc"} and len(rows) > 380


def _ones(row):
    """A constant for each source, as an instruction without registers has them."""
    implicit = [row.results[0] if name == "result" else "mask" for name in row.implicit]
    kinds = [*row.sources, *implicit]
    return [np.bool_(1) if kind in (*MASKS, "mask", "scc") else NUMPY[kind](1) for kind in kinds]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_vector_row_takes_constants_alone(name):
    for row in GENERATIONS[name].vector.values():
        with np.errstate(all="ignore"):
            found = row.function(*_ones(row))
        results = found if len(row.results) > 1 else [found]
        assert [np.shape(result) for result in results] == [()] * len(row.results)
