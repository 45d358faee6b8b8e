"""Rows of AMD's instructions. tests/oracle/interpreter/test_collectives.py compares the layouts."""

from refcomp.ir.gpu_instructions.amd import AMD, PREFIX
from refcomp.ir.gpu_instructions.records import MatrixProduct


def test_each_row_has_gpus_and_no_compute_capability():
    for row in AMD:
        assert row.name.startswith(PREFIX) and row.gpus and row.capability == 0


def test_names_state_the_shapes():
    for row in AMD:
        if isinstance(row, MatrixProduct):
            size = 32 if "32x32" in row.name else 16
            rows = {row.c.place(t, n).row for t in range(row.wave) for n in range(row.c.count)}
            assert rows == set(range(size))
            assert f"{size}x{size}x{row.depth}" in row.name
