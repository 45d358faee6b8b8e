"""What stand-ins write depends on all that they are given, and on nothing else."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import Unsupported
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.oracle.exact.field import P, to_field
from refcomp.oracle.exact.stand_ins import tensors_with_stand_ins, with_stand_ins
from refcomp.oracle.interpreter.interpret import InterpretError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.evaluate import evaluate

_HEAD = "func f(A: {0}[4], B: {0}[4] out) "


def written(call="packed g(read(A), write(B), 3)", dtype="f32", given=None, before=7.0, fielded=0):
    func = with_stand_ins(parse_func(_HEAD.format(dtype) + "{ " + call + " }"))
    func = to_field(func) if fielded else func
    kind = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}[dtype]
    kind = np.int64 if fielded and dtype.startswith("f") else kind
    a, b = np.asarray([1, 2, 3, 4] if given is None else given, kind), np.full(4, before, kind)
    interpret(func, [a, b])
    return b.tolist()


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64"])
@pytest.mark.parametrize("fielded", [False, True])
def test_the_same_call_writes_the_same(dtype, fielded):
    found = written(dtype=dtype, fielded=fielded)
    assert found == written(dtype=dtype, fielded=fielded, before=3)
    assert 7 not in found


@pytest.mark.parametrize(
    "other",
    [
        {"given": [1, 2, 3, 5]},
        {"call": "packed h(read(A), write(B), 3)"},
        {"call": "packed g(read(A), write(B), 4)"},
        {"call": "packed g(read(A), update(B), 3)"},
        {"call": "packed g(read(A), write(B), 3) packed g(read(A), update(B), 3)"},
        {"call": "packed g(write(B), 3)"},
    ],
)
@pytest.mark.parametrize("fielded", [False, True])
def test_another_call_writes_something_else(other, fielded):
    assert written(fielded=fielded) != written(**other, fielded=fielded)


def test_what_is_updated_is_read():
    call = "extern i32 g(update(B))"
    assert written(call) != written(call, before=8)


def test_integers_may_be_indices_and_field_elements_are_any():
    assert set(written(dtype="i64")) <= {0, 1}
    assert set(written(dtype="i64", fielded=True)) <= {0, 1}
    assert max(written(fielded=True)) > 1 and all(0 <= x < P for x in written(fielded=True))


def test_any_nan_is_as_good_as_another():
    nan = np.float32(np.nan)
    assert written(given=[1, 2, nan, 4]) == written(given=[1, 2, -nan, 4])


def test_what_is_read_must_be_there():
    with pytest.raises(InterpretError, match="element 0 of T is read, never written"):
        written("alloc T: f32[2] { packed g(read(T), write(B)) }")


def test_a_function_that_calls_nothing_is_left_alone():
    func = parse_func("func f(B: f32[4] out) { B[0] = 1f32 }")
    assert with_stand_ins(func) is func
    calling = with_stand_ins(parse_func(_HEAD.format("f32") + "{ packed g(read(A), write(B)) }"))
    assert "packed refcomp.oracle.stand_in(" in print_func(calling)


def test_the_address_of_an_element_is_refused():
    with pytest.raises(Unsupported, match="g is given the address of an element") as caught:
        written("extern i32 g(write(B[1]))")
    assert "which part of the memory it reads and writes" in caught.value.why


def test_tensors_have_them_too():
    a = rc.placeholder((3,), name="A")
    e = rc.extern((3,), [a], lambda i, o: rc.call_packed("tests.nowhere", *i, *o), name="E")
    (fresh,), places = tensors_with_stand_ins([e])
    ones, twos = (np.full(3, x, np.float32) for x in (1, 2))
    found = [evaluate([fresh], {places[a]: given})[0].tolist() for given in (ones, ones, twos)]
    assert found[0] == found[1] != found[2]


def test_texts_belong_to_the_function_that_stands_in():
    def stood(text):
        body = f'packed f("{text}", read(A), write(B))'
        return with_stand_ins(parse_func(f"func g(A: f32[3], B: f32[3] out) {{ {body} }}"))

    assert print_func(stood("x")) == print_func(stood("x")) != print_func(stood("y"))
