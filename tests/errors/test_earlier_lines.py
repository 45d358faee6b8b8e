"""A message quotes the earlier lines with which a request conflicts, each with its label."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import refcomp as rc
from refcomp import topi
from refcomp.schedule.schedule import replay
from tests.quotations import quoted, quoted_call

Quoted = tuple[Callable[[], object], dict[str, str]]
CASES: dict[str, Quoted] = {}


def case(**labels: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Register a program that is refused, and the lines that its message quotes, by label."""

    def register(program: Callable[[], object]) -> Callable[[], object]:
        named = {label.replace("_", " "): line for label, line in labels.items()}
        CASES[program.__name__] = program, named
        return program

    return register


@case(split_here="outer, _ = s[c].split(c.op.axis[0], 2)")
def a_loop_that_was_split() -> None:
    _, c, s = chain()
    outer, _ = s[c].split(c.op.axis[0], 2)
    assert outer.name == "i.outer"
    s[c].split(c.op.axis[0], 4)


@case(fused_here="s[c].fuse(*c.op.axis)")
def a_loop_that_was_fused() -> None:
    _, c, s = chain()
    s[c].fuse(*c.op.axis)
    s[c].unroll(c.op.axis[1])


@case(tiled_here="s[c].tile(*c.op.axis, 2, 2)")
def a_loop_that_was_tiled() -> None:
    _, c, s = chain()
    s[c].tile(*c.op.axis, 2, 2)
    s[c].unroll(c.op.axis[1])


@case(parallelized_here="s[c].parallel(c.op.axis[0])")
def a_loop_that_is_marked() -> None:
    _, c, s = chain()
    s[c].parallel(c.op.axis[0])
    s[c].vectorize(c.op.axis[0])


@case(attached_here="s[b].compute_at(s[c], c.op.axis[0])")
def a_loop_at_which_a_stage_is_attached() -> None:
    b, c, s = chain()
    s[b].compute_at(s[c], c.op.axis[0])
    s[c].split(c.op.axis[0], 2)


@case(**{"stage_B_is_attached_here": "s[b].compute_at(s[c], c.op.axis[0])"})
def an_inlined_stage_that_holds_another() -> None:
    b, c, s = chain()
    d = rc.compute((4, 4), lambda i, j: c[i, j] + 1.0, name="D")
    s = rc.create_schedule(d)
    s[b].compute_at(s[c], c.op.axis[0])
    s[c].compute_inline()


@case(**{"axis_i_is_bound_here": 's[c].bind(i, rc.thread_axis("threadIdx.x"))'})
def two_loops_of_one_thread_axis() -> None:
    _, c, s = chain()
    i, j = c.op.axis
    s[c].bind(i, rc.thread_axis("threadIdx.x"))
    s[c].bind(j, rc.thread_axis("threadIdx.x"))


@case(
    **{"stage_S_is_declared_here": "c = rc.compute((4,), lambda i: rc.sum(a[i, k], k), name='S')"}
)
def a_reduction_axis_that_is_vectorized() -> None:
    a = rc.placeholder((4, 4), name="A")
    k = rc.reduce_axis((0, 4), "k")
    # fmt: off
    c = rc.compute((4,), lambda i: rc.sum(a[i, k], k), name='S')
    # fmt: on
    rc.create_schedule(c)[c].vectorize(k)


@case(
    **{"stage_C_is_declared_here": 'c = rc.compute((4, 4), lambda i, j: b[i, j] * 2.0, name="C")'}
)
def an_axis_of_another_stage() -> None:
    b, c, s = chain()
    s[c].split(b.op.axis[0], 2)


@case(**{"A_is_declared_here": 'a = rc.placeholder((4, 4), name="A")'})
def a_placeholder_that_the_arguments_lack() -> None:
    _, c, s = chain()
    rc.lower(s, [c])


@case(recorded_here="s[c].split(c.op.axis[0], 2)")
def a_step_that_does_not_fit() -> None:
    _, c, s = chain()
    s[c].split(c.op.axis[0], 2)
    other = rc.placeholder((4,), name="Z")
    replay([rc.compute((4,), lambda i: other[i], name="Y").op], s.steps)


@case(**{"A: f32[4, 8] is declared here": 'a = rc.placeholder((4, 8), name="A")'})
def a_read_with_too_few_indices() -> None:
    a = rc.placeholder((4, 8), name="A")
    rc.compute((4,), lambda i: a[i])


@case(**{"A: f32[4] is declared here": 'a = rc.placeholder((4,), name="A")'})
def a_read_beyond_the_end() -> None:
    a = rc.placeholder((4,), name="A")
    rc.compute((5,), lambda i: a[i])


@case(**{"A: f32[4] is declared here": 'a = rc.placeholder((4,), name="A")'})
def a_tensor_as_a_number() -> None:
    a = rc.placeholder((4,), name="A")
    rc.compute((4,), lambda i: rc.exp(a))


@case(
    **{
        "A: f32[4] is declared here": 'a = rc.placeholder((4,), name="A")',
        "B: f64[4] is declared here": 'b = rc.placeholder((4,), "float64", name="B")',
    }
)
def operands_of_two_dtypes() -> None:
    a = rc.placeholder((4,), name="A")
    b = rc.placeholder((4,), "float64", name="B")
    topi.add(a, b)


@case(
    **{
        "A: f32[4] is declared here": 'a = rc.placeholder((4,), name="A")',
        "B: f32[5] is declared here": 'b = rc.placeholder((5,), name="B")',
    }
)
def operands_of_two_shapes() -> None:
    a = rc.placeholder((4,), name="A")
    b = rc.placeholder((5,), name="B")
    topi.add(a, b)


@case(
    **{
        "A: f32[4, 8] is declared here": 'a = rc.placeholder((4, 8), name="A")',
        "B: f32[4, 8] is declared here": 'b = rc.placeholder((4, 8), name="B")',
    }
)
def factors_that_do_not_fit() -> None:
    a = rc.placeholder((4, 8), name="A")
    b = rc.placeholder((4, 8), name="B")
    topi.matmul(a, b)


@case(registered_here='rc.register_func("earlier.twice", abs, override=True)')
def a_function_that_is_registered_twice() -> None:
    rc.register_func("earlier.twice", abs, override=True)
    rc.register_func("earlier.twice", len)


@case(declared_here="func f(A: f32[1], A: f64[1] out) { }")
def two_parameters_of_one_name() -> None:
    rc.parse_func("func g() { }  # A\nfunc f(A: f32[1], A: f64[1] out) { }".partition("\n")[2])


def chain() -> tuple[rc.Tensor, rc.Tensor, rc.Schedule]:
    a = rc.placeholder((4, 4), name="A")
    b = rc.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="B")
    c = rc.compute((4, 4), lambda i, j: b[i, j] * 2.0, name="C")
    return b, c, rc.create_schedule(c)


@pytest.mark.parametrize("name", CASES)
def test_the_earlier_line_is_quoted(name: str) -> None:
    program, lines = CASES[name]
    with pytest.raises(rc.UserError) as caught:
        program()
    assert {label: quoted(caught.value, label) for label in lines} == lines
    assert len(caught.value.earlier) == len(lines)
    assert quoted_call(caught.value), "the wrong line is marked, too"
