import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import Unsupported
from refcomp.oracle.tensors.evaluate import evaluate


def test_rows_come_from_the_rows_before():
    x = refcomp.placeholder((5, 3), name="X")
    st = refcomp.placeholder((5, 3), name="st")
    init = refcomp.compute((2, 3), lambda t, i: x[t, i], name="init")
    up = refcomp.compute((5, 3), lambda t, i: st[t - 2, i] + st[t - 1, i] * x[t, i], name="up")
    s = refcomp.scan(init, up, st)
    given = np.arange(15, dtype=np.float32).reshape(5, 3) % 4
    wanted = given.copy()
    for t in range(2, 5):
        wanted[t] = wanted[t - 2] + wanted[t - 1] * given[t]
    assert evaluate([s], {x: given})[0].tolist() == wanted.tolist()


def test_more_init_than_rows():
    st = refcomp.placeholder((2,), "int32", "st")
    init = refcomp.compute((4,), lambda t: t + 7, name="init")
    up = refcomp.compute((2,), lambda t: st[t - 1], name="up")
    s = refcomp.scan(refcomp.compute((4,), lambda t: init[t].astype("int32"), name="i32"), up, st)
    assert evaluate([s], {})[0].tolist() == [7, 8]


def test_another_row_is_not_evaluated():
    st = refcomp.placeholder((4,), name="st")
    mid = refcomp.compute((4,), lambda t: st[t - 1] * 2.0, name="mid")
    up = refcomp.compute((4,), lambda t: mid[t * 1] + 1.0, name="up")
    s = refcomp.scan(refcomp.compute((1,), lambda t: 0.0, name="init"), up, st)
    with pytest.raises(Unsupported, match="up reads another row of mid than its own"):
        evaluate([s], {})


def test_a_c_function_is_called_for_each_element():
    x = refcomp.placeholder((3,), "float64", "X")
    y = refcomp.compute(
        (3,), lambda i: refcomp.call_pure_extern("float64", "hypot", x[i], 4.0 * x[i] / x[i]), "Y"
    )
    assert evaluate([y], {x: np.array([3.0, 3.0, 0.0])[:2].repeat([1, 2])})[0].tolist() == [5] * 3
