"""What control operators read from tensors of a machine."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import as_sequence, as_tensor, read_bool, read_integer


class Reader:
    """A machine that only reads."""

    def read(self, tensor: object) -> np.ndarray:
        return np.asarray(tensor)


def test_numbers_are_read_from_tensors_of_one_element() -> None:
    assert read_integer(Reader(), np.array([7]), "n") == 7
    assert read_bool(Reader(), np.array(True), "c") is True


@pytest.mark.parametrize("read", [read_integer, read_bool])
@pytest.mark.parametrize("shape", [(2,), (0,), (1, 2)])
def test_several_elements_are_no_number(read, shape) -> None:
    with pytest.raises(UserError, match="position is a tensor of shape .*, not one element"):
        read(Reader(), np.zeros(shape), "position")


def test_values_of_other_kinds_are_bugs() -> None:
    with pytest.raises(AssertionError, match="tensor"):
        as_tensor((), "tensor")
    with pytest.raises(AssertionError, match="sequence"):
        as_sequence(None, "sequence")
