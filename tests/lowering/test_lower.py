import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Let
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import buffers_in, walk
from refcomp.ir.stmt import Allocate
from refcomp.ir.verify import verify
from refcomp.lowering.lower import argument_notes
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.schedule.stage import Stage


def _add(n):
    a, b = (refcomp.placeholder((n,), name=name) for name in "AB")
    c = refcomp.compute((n,), lambda i: a[i] + b[i], name="C")
    return refcomp.create_schedule(c.op), a, b, c


def test_vector_add(golden):
    s, a, b, c = _add(refcomp.var("n"))
    func = refcomp.lower(s, [a, b, c], "add")
    verify(func, "nested")
    assert func.outputs == ("C",) and [v.name for v in func.symbols] == ["n"]
    golden("lowering/vector_add.txt", refcomp.print_func(func))


def test_intermediate_tensors_are_allocated_and_inlined_ones_are_not():
    a = refcomp.placeholder((8,), name="A")
    t = refcomp.compute((8,), lambda i: a[i] + 1.0, name="T")
    c = refcomp.compute((8,), lambda i: t[i] * 2.0, name="C")
    s = refcomp.create_schedule(c.op)
    allocated = [n.buffer.name for n in walk(refcomp.lower(s, [a, c])) if isinstance(n, Allocate)]
    assert allocated == ["T"]
    s[t].compute_inline()
    func = refcomp.lower(s, [a, c])
    assert not any(isinstance(n, Allocate) for n in walk(func))
    assert {buffer.name for buffer in buffers_in(func)} == {"A", "C"}


def test_an_intermediate_tensor_may_be_an_argument_and_is_an_output_then():
    a = refcomp.placeholder((8,), name="A")
    t = refcomp.compute((8,), lambda i: a[i] + 1.0, name="T")
    c = refcomp.compute((8,), lambda i: t[i] * 2.0, name="C")
    s = refcomp.create_schedule(c.op)
    assert refcomp.lower(s, [a, t, c]).outputs == ("T", "C")
    s[t].compute_inline()
    with pytest.raises(UserError, match="tensor T is an argument, but its stage is inlined"):
        refcomp.lower(s, [a, t, c])


def test_arguments_of_one_name_are_told_apart():
    a, b = (refcomp.placeholder((4,), name="X") for _ in range(2))
    c = refcomp.compute((4,), lambda i: a[i] + b[i], name="X")
    func = refcomp.lower(refcomp.create_schedule(c.op), [a, b, c])
    assert [buffer.name for buffer in func.buffers] == ["X", "X.1", "X.2"]
    assert func.outputs == ("X.2",)


def test_let_of_a_compute_gives_its_variable_a_value():
    a, twice = refcomp.placeholder((4,), name="A"), refcomp.var("twice", "float32")
    b = refcomp.compute((4,), lambda i: Let(twice, a[i] + a[i], twice * twice), name="B")
    func = refcomp.lower(refcomp.create_schedule(b.op), [a, b])
    assert func.params == tuple(func.buffers)


def test_scalar_arguments():
    a, alpha = refcomp.placeholder((4,), name="A"), refcomp.var("alpha", "float32")
    b = refcomp.compute((4,), lambda i: a[i] * alpha, name="B")
    s = refcomp.create_schedule(b.op)
    assert refcomp.lower(s, [alpha, a, b]).params[0] is alpha
    with pytest.raises(
        UserError, match=r"uses alpha, which nothing gives a value(.|\n)*add scalar"
    ):
        refcomp.lower(s, [a, b])


def test_an_axis_in_a_compute_that_its_own_compute_reads():
    a = refcomp.placeholder((4,), name="A")
    k = refcomp.reduce_axis(4, "k")
    leaks = [
        refcomp.compute((4,), lambda i: (a + i)[i], name="B"),
        refcomp.compute((4,), lambda i: refcomp.sum((a * k.var)[i], k), name="B"),
    ]
    for b, name in zip(leaks, "ik", strict=True):
        with pytest.raises(UserError, match=f"uses {name}, which nothing gives a value(.|\n)*own"):
            refcomp.lower(refcomp.create_schedule(b.op), [a, b])


@pytest.mark.parametrize("missing", [0, 2])
def test_missing_arguments(missing):
    s, *args = _add(8)
    name = args.pop(missing).name
    with pytest.raises(UserError, match=f"the arguments lack {name}"):
        refcomp.lower(s, args)


def test_a_tensor_of_another_schedule():
    s, *args = _add(8)
    foreign = refcomp.compute((8,), lambda i: i, name="D")
    with pytest.raises(UserError, match="D is not part of this schedule"):
        refcomp.lower(s, [*args, foreign])


def test_an_argument_that_nothing_reads():
    s, *args = _add(8)
    n = refcomp.var("n")
    unread = refcomp.placeholder((n,), name="D")
    func = refcomp.lower(s, [*args, unread])
    assert "main(A: f32[8], B: f32[8], C: f32[8] out, D: f32[n])" in print_func(func)
    module = refcomp.build(s, [*args, unread], target="interp")
    c = np.zeros(8, "float32")
    module(np.ones(8, "float32"), np.ones(8, "float32"), c, np.zeros(5, "float32"))
    assert c.tolist() == [2] * 8
    assert argument_notes(s, [*args, unread]) == ("nothing reads argument D",)


def test_an_output_that_is_not_an_argument_is_allocated_inside():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((8,), lambda i: b[i] * 2.0, name="C")
    s = refcomp.create_schedule([b.op, c.op])
    text = print_func(refcomp.lower(s, [a, c]))
    assert "main(A: f32[8], C: f32[8] out)" in text and "alloc B: f32[8]" in text
    first, second = refcomp.compute((8,), lambda i: (a[i] + 1.0, a[i] * 2.0), name="D")
    pair = refcomp.create_schedule(first.op)
    text = print_func(refcomp.lower(pair, [a, second]))
    assert "main(A: f32[8], D.v1: f32[8] out)" in text and "alloc D: f32[8]" in text
    (note,) = argument_notes(pair, [a, second])
    assert note == f"output {first.name} is not an argument: its memory is inside, " + (
        "and no caller sees it"
    )


def test_the_state_of_a_scan_that_is_not_an_argument_is_allocated_inside():
    x = refcomp.placeholder((4, 3), name="X")
    s1, s2 = (refcomp.placeholder((4, 3), name=name) for name in ("S1", "S2"))
    init = [refcomp.compute((1, 3), lambda _, i: x[0, i], name=name) for name in ("I1", "I2")]
    u1 = refcomp.compute((4, 3), lambda t, i: s1[t - 1, i] + x[t, i], name="U1")
    u2 = refcomp.compute((4, 3), lambda t, i: s2[t - 1, i] + s1[t - 1, i], name="U2")
    sums, nested = refcomp.scan(init, [u1, u2], [s1, s2], inputs=[x])
    s = refcomp.create_schedule(sums.op)
    given = np.arange(12, dtype="float32").reshape(4, 3)
    expected = refcomp.oracle.evaluate([nested], {x: given})[0]
    found = np.zeros((4, 3), "float32")
    refcomp.build(s, [x, nested], target="interp")(given, found)
    assert (found == expected).all()


def test_an_argument_given_twice_or_of_another_kind():
    s, a, b, c = _add(8)
    with pytest.raises(UserError, match="argument A is given twice"):
        refcomp.lower(s, [a, a, b, c])
    with pytest.raises(UserError, match="argument 3 is a int"):
        refcomp.lower(s, [a, b, c, 8])


def test_lowering_twice_gives_the_same():
    s, *args = _add(8)
    assert refcomp.print_func(refcomp.lower(s, args)) == refcomp.print_func(refcomp.lower(s, args))


def test_what_is_no_schedule_and_no_list_of_arguments_is_refused():
    s, a, b, c = _add(4)
    with pytest.raises(UserError, match="is not a schedule"):
        refcomp.lower(c.op, [a, b, c])
    with pytest.raises(UserError, match="not a list") as caught:
        refcomp.lower(s, a)
    assert "[A, B, C]" in str(caught.value)
    with pytest.raises(UserError, match="lowered without arguments\n.*pass args=\\[A, B, C\\]"):
        refcomp.lower(s)
    with pytest.raises(UserError, match="3 is not a name for a function"):
        refcomp.lower(s, [a, b, c], name=3)


def test_variables_of_one_name_are_kept_apart():
    n, m, x, y = (refcomp.var("n", dtype) for dtype in ("int64", "int64", "float32", "float32"))
    a, b = refcomp.placeholder((n,), name="A"), refcomp.placeholder((m,), name="n")
    t = refcomp.compute((m, n), lambda j, i: b[j] * x - a[i], name="T")
    c = refcomp.compute((n, m), lambda i, j: t[j, i] * y + (n - m), name="C")
    func = refcomp.lower(refcomp.create_schedule(c), [a, b, x, y, c])
    verify(func, "nested")
    assert len({var.name for var in (*func.params, *func.symbols)}) == 7
    result = np.zeros((2, 3), np.float32)
    first, second = np.array([1, 2], np.float32), np.array([5, 6, 7], np.float32)
    interpret(func, [first, second, 3.0, 10.0, result])
    expected = (second[None, :] * 3 - first[:, None]) * 10 + (2 - 3)
    assert result.tolist() == expected.tolist()


def test_a_tensor_may_have_the_name_of_a_symbol():
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="n")
    c = refcomp.compute((n,), lambda i: a[i] + n, name="n")
    func = refcomp.lower(refcomp.create_schedule(c), [a, c])
    verify(func, "nested")
    assert [buffer.name for buffer in func.buffers] == ["n.1", "n.2"]
    assert func.outputs == ("n.2",) and func.symbols == (n,)


def test_the_simple_mode_of_the_classic_api_is_taken():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i], name="B")
    s = refcomp.create_schedule(b)
    simple = refcomp.print_func(refcomp.lower(s, [a, b], simple_mode=True))
    assert simple == refcomp.print_func(refcomp.lower(s, [a, b]))


def test_work_on_stages_is_linear_in_their_number(monkeypatch):
    attach_point, asked = Stage.attach_point, []
    counting = property(lambda s: asked.append(0) or attach_point.fget(s))
    monkeypatch.setattr(Stage, "attach_point", counting)
    numbers = []
    for count in (10, 40):
        tensors = [refcomp.placeholder((8,), name="A")]
        for _ in range(count):
            read = tensors[-1]
            tensors.append(refcomp.compute((8,), lambda i, read=read: read[i] + 1.0, name="B"))
        s = refcomp.create_schedule(tensors[-1])
        asked.clear()
        refcomp.lower(s, tensors)
        numbers.append(len(asked))
    assert 0 < numbers[1] <= 4.5 * numbers[0]
