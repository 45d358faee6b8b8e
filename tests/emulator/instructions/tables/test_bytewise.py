"""Instructions on bytes: LLVM's own lowering on the host is what their results are held against."""

import pytest

from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.instructions.tables.bytewise import VECTOR_BYTES
from refcomp.emulator.ledger import read_ledger


@pytest.mark.parametrize("gpu", GENERATIONS)
def test_each_row_is_compared_with_a_reference(gpu):
    """By tests/emulator/test_ledger.py, with least and greatest operands and some lanes off."""
    compared = {entry.mnemonic for entry in read_ledger(GENERATIONS[gpu]) if entry.is_compared}
    assert VECTOR_BYTES.keys() <= compared and len(VECTOR_BYTES) == 8
