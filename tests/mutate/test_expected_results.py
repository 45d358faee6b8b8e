"""Right results are told from wrong ones: by bits, and by bounds where the last digits are free."""

import numpy as np
import pytest

from refcomp.mutate.expected_results import ExpectedResults
from refcomp.mutate.host_runs import Ran
from refcomp.mutate.operations import operations


def expected_results(*names, target="llvm"):
    return [ExpectedResults(one) for one in operations(target) if one.name in names]


@pytest.fixture(scope="module")
def floats():
    return expected_results("f32")[0]


def _changed(right, name, change):
    arrays = [array.copy() for array in right.of(right.arrays())]
    (k,) = [k for k, arg in enumerate(right.computation.args) if arg.name == name]
    change(arrays[k])
    return Ran(tuple(arrays))


def test_the_right_results_are_not_told(floats):
    ran = _changed(floats, "add_", lambda array: None)
    assert floats.difference(ran) == "" and not floats.killing_tolerances(ran)
    assert not floats.differs_on_more_inputs(lambda arrays: Ran(tuple(floats.of(arrays))))


def test_one_bit_is_told_by_ours_alone(floats):
    def nudge(array):
        (k,) = np.flatnonzero(np.isfinite(array) & (array > 1))[:1]
        array[k] = np.nextafter(array[k], np.float32(0))

    ran = _changed(floats, "add_", nudge)
    assert floats.difference(ran) == "add_: other bits"
    assert not floats.killing_tolerances(ran)


def test_the_sign_of_zero_is_told(floats):
    def flip(array):
        array[array == 0] *= -1

    assert floats.difference(_changed(floats, "greatest_", flip)) == "greatest_: other bits"


def test_nan_is_nan_of_whatever_bits(floats):
    def sign(array):
        array[np.isnan(array)] = np.copysign(np.float32(np.nan), -1)

    assert floats.difference(_changed(floats, "add_", sign)) == ""


def test_faults_and_failures(floats):
    right = _changed(floats, "add_", lambda array: None)
    assert floats.difference(Ran(right.arrays, "it keeps memory")) == "it keeps memory"
    assert not floats.killing_tolerances(Ran(right.arrays, "it keeps memory"))
    failed = Ran(right.arrays, failed=True)
    assert "the other way round" in floats.difference(failed)
    assert len(floats.killing_tolerances(failed)) == 2
    assert len(floats.killing_tolerances(Ran((), "it raises OSError"))) == 2


def test_last_digits_are_free_where_they_are():
    (functions,) = expected_results("functions of float32")
    bounds = functions.of(functions.arrays())[1:]
    exact = [bounded.nearest for bounded in bounds]
    numbers = functions.arrays()[0]
    near = Ran((numbers, *(np.nextafter(one, np.float32(9)) for one in exact)))
    assert functions.difference(near) == "" and not functions.killing_tolerances(near)
    far = Ran((numbers, *(one * np.float32(1.0001) for one in exact)))
    assert "wrong" in functions.difference(far) and not functions.killing_tolerances(far)


def test_lack_of_memory_must_be_said():
    (lacking,) = expected_results("no memory")
    arrays = tuple(lacking.arrays())
    assert lacking.difference(Ran(arrays, failed=True)) == ""
    assert "the other way round" in lacking.difference(Ran(arrays))


def test_other_numbers_are_others(floats):
    first, again, other = floats.arrays(1), floats.arrays(1), floats.arrays(2)
    assert first[0].tobytes() == again[0].tobytes() != other[0].tobytes()
