"""Rows of the table, as they are written."""

import numpy as np

from refcomp.emulator.arrays import NUMPY
from refcomp.emulator.generation import PACKED, SCALAR, VECTOR
from refcomp.emulator.operation import operation


def test_a_signature_names_results_sources_and_what_is_implicit():
    row = operation("f64 mask = f64 u32; vcc", np.add, is_approximate=True)
    assert (row.results, row.sources, row.implicit) == (("f64", "mask"), ("f64", "u32"), ("vcc",))
    assert row.is_approximate and not row.keeps_high and row.spread is None


def test_every_row_is_made_of_known_types():
    rows = [*VECTOR.values(), *SCALAR.values(), *(row for _, row in PACKED.values())]
    kinds = {kind for row in rows for kind in (*row.results, *row.sources)}
    assert kinds <= {*NUMPY, "mask", "scc"} and len(rows) > 380
