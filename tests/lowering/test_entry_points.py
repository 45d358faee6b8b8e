"""Requirements that are checked at all values of some axes, and calls that break them."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.certificates.bounds import Reason, bounds_of
from refcomp.codegen.signature import signature_of
from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func, print_requirement
from refcomp.ir.rewrite import substitute
from refcomp.lowering.entry_conditions import with_entry_conditions
from refcomp.runtime.module import Module

N, M = rc.var("n"), rc.var("m")
A = rc.placeholder((N,), name="A")
PARAMS = "A: f32[n], X: i64[m], C: f32[m] out, k: i64, u: u64, x: f32"


# The index as a function of Python and of te, its text, and how many results fit a small A.
INDICES = {
    "shift": (lambda i: i >> 1, "i >> 1", 8),
    "double": (lambda i: i << 1, "i << 1", 3),
    "mask": (lambda i: i & 7, "i & 7", 5),
    "pairs": (lambda i: i ^ 1, "i ^ 1", 4),
    "absolute": (lambda i: _choose(i < 3, 3 - i, i - 3), "select(i < 3, 3 - i, i - 3)", 8),
    "quotient and remainder": (lambda i: i // 2 + i % 2, "i // 2 + i % 2", 9),
    "remainder": (lambda i: (i + 1) % 8, "(i + 1) % 8", 4),
    "itself": (lambda i: i + i // 2, "i + i // 2", 4),
}


def _choose(condition: object, first: object, second: object) -> object:
    if isinstance(condition, bool):
        return first if condition else second
    return rc.select(condition, first, second)


def _module(body: object, target: object, threads: int = 0) -> Module:
    c = rc.compute((M,), body, name="C")
    s = rc.create_schedule(c)
    if threads:
        outer, inner = s[c].split(c.op.axis[0], threads)
        s[c].bind(outer, rc.thread_axis("blockIdx.x"))
        s[c].bind(inner, rc.thread_axis("threadIdx.x"))
    return rc.build(s, [A, c], target=target)


def _check_calls(module: Module, name: str, device: object = None) -> None:
    """Check that calls are refused exactly where an index is beyond A."""
    index, _, most = INDICES[name]
    size = 1 + max(map(index, range(most)))
    assert index(most) >= size
    for count in (0, most, most + 1):
        given = [np.arange(size, dtype="f4"), np.zeros(count, "f4")]
        arrays = [rc.array(one, device or rc.cpu()) for one in given]
        if count <= most:
            module(*arrays)
            expected = [given[0][index(i)] for i in range(count)]
            np.testing.assert_array_equal(arrays[1].asnumpy(), expected)
            continue
        with pytest.raises(UserError, match=f"dimension 0 of A, which has {size} elements"):
            module(*arrays)


@pytest.mark.parametrize("name", INDICES)
def test_an_index_that_no_rule_follows(name: str) -> None:
    index, text, _ = INDICES[name]
    module = _module(lambda i: A[index(i)], "interp")
    assert str(module.entry.signature.requires[-1]) == f"for i in range(m) {text} < n"
    _check_calls(module, name)


@pytest.mark.llvm
@pytest.mark.tools
def test_the_host_refuses_the_same_calls() -> None:
    for name, (index, _, _) in INDICES.items():
        c = rc.compute((M,), lambda i, index=index: A[index(i)], name="C")
        s = rc.create_schedule(c)
        s[c].vectorize(s[c].split(c.op.axis[0], 4)[1])
        _check_calls(rc.build(s, [A, c], target="llvm"), name)


DEVICES = [
    pytest.param("opencl", lambda: rc.opencl(0), marks=pytest.mark.pocl),
    pytest.param("rocm -mcpu=gfx942", lambda: rc.rocm_emulator("gfx942"), marks=pytest.mark.rocm),
]


@pytest.mark.tools
@pytest.mark.parametrize(("target", "device"), DEVICES)
@pytest.mark.parametrize("name", ["shift", "absolute"])
def test_devices_refuse_the_same_calls(target: str, device: object, name: str) -> None:
    index = INDICES[name][0]
    module = _module(lambda i: A[index(i)], target, threads=4)
    _check_calls(module, name, device())


def _required(body: str, params: str = PARAMS) -> list[str]:
    func = with_entry_conditions(parse_func(f"func f({params}) {{ {body} }}"))
    return [print_requirement(requirement) for requirement in func.requires]


@pytest.mark.parametrize(
    ("body", "conditions"),
    [
        # Proved, from ranges and from conditions:
        ("for i in range(m) { C[i] = f32(C[i & 0]) }", []),
        ("for i in range(m) { if (i % 3 == 1 and i >> 1 < n) { C[i] = A[i >> 1] } }", []),
        # Axes of conditions that the index does not name:
        (
            "for i in range(m) { for j in range(k) { if (i ^ j < 3) { C[i] = A[j] } } }",
            ["for i in range(m) for j in range(k) not i ^ j < 3 or j < n"],
        ),
        # Conditions that hold in the first iteration do not matter.
        (
            "for i in range(m) { for j in range(4) { if (j * 2 < 7) { C[i] = A[i ^ 2] } } }",
            ["for i in range(m) i ^ 2 < n"],
        ),
        # Without iterations there is no access.
        (
            "for j in range(k) { for i in range(m) { C[i] = A[i & 3] } }",
            ["for i in range(m) k <= 0 or i & 3 < n"],
        ),
        (
            "for j in range(m) { for l in range(j % 3) { C[j] = A[k & 3] } }",
            ["for j in range(m) for l in range(j % 3) k & 3 < n"],
        ),
        # Guards of axes on which such a range depends: A[2] is never read.
        (
            "for i in range(5) { if (i < 1) { for j in range(m) {"
            " for l in range(2, extent=max(i - 3, 0)) { C[j] = A[2] } } } }",
            [
                "for i in range(5) for l in range(2, extent=max(i - 3, 0))"
                " m <= 0 or (not i < 1 or 2 < n)"
            ],
        ),
        ("C[0] = A[k & 3]", ["0 < m", "for once in range(1) k & 3 < n"]),
        ("C[0] = A[i64(u) & 3]", ["0 < m", "for once in range(1) i64(u) & 3 < n"]),
        ("for i in range(2) { for j in range(0) { C[j] = A[i ^ 9] } }", []),
        # Lets are followed.
        (
            "for i in range(m) { let j: i64 = i * 4 & 9 { C[i] = A[j] } }",
            ["for i in range(m) i * 4 & 9 < n"],
        ),
        # Both axes of an ordered pair:
        (
            "for i in range(m) { for j in range(i) { if (j % 2 == 0) { C[i] = A[i - j - 1] } } }",
            ["for i in range(m) for j in range(i) not j % 2 == 0 or i - j - 1 < n"],
        ),
        # Data, float arguments, and functions that targets round differently are not stated.
        ("for i in range(m) { C[i] = A[X[i] & 7] }", []),
        ("for i in range(m) { if (X[i] > 2) { C[i] = A[i & 7] } }", []),
        ("for i in range(m) { for j in range(X[i]) { C[i] = A[j & 7] } }", []),
        ("for i in range(m) { let j: i64 = X[i] { C[i] = A[i ^ j] } }", []),
        ("for i in range(m) { C[i] = A[i64(f32(i) * x)] }", []),
        ("for i in range(m) { C[i] = A[i64(exp(f32(i)))] }", []),
    ],
)
def test_requirements_of_loops(body: str, conditions: list[str]) -> None:
    assert _required(body) == conditions


def test_what_is_constant_is_judged_at_once() -> None:
    loops = "for i in range(99) { for j in range(99) { C[(i ^ j) & 63] = 1.0f32 } }"
    assert _required(loops, "C: f32[64] out") == []
    with pytest.raises(UserError) as caught:
        _required(loops, "C: f32[63] out")
    assert caught.value.what == "f writes index 63 of dimension 0 of C"
    assert caught.value.why == "that dimension has the elements 0 .. 62"
    # Not at the points that a condition leaves out:
    guarded = "for i in range(5000) { if (i % 64 != 63) { C[i & 63] = 1.0f32 } }"
    assert _required(guarded, "C: f32[63] out") == []


def test_an_index_of_too_many_points_is_left_to_the_call() -> None:
    loops = "for i in range(3000) { for j in range(3000) { C[i * j % 4096 & -2] = 1.0f32 } }"
    stated = ["for i in range(3000) for j in range(3000) i * j % 4096 & -2 < 4095"]
    assert _required(loops, "C: f32[4095] out") == stated
    for size, count in ((4095, "C: f32[4095] out"), (4094, "C: f32[4094] out")):
        func = with_entry_conditions(parse_func(f"func f({count}) {{ {loops} }}"))
        checks = rc.runtime.EntryChecks(signature_of(func))
        if size == 4095:
            checks.check([np.zeros(size, "f4")])
            continue
        with pytest.raises(UserError, match="4094 of dimension 0 of C, which has 4094 elements"):
            checks.check([np.zeros(size, "f4")])


def test_many_conditions_that_share_operands_take_little_time() -> None:
    i = rc.var("i")
    value = A[i & 7]
    for bit in range(40):
        value = rc.select(((i >> bit) & 1).equal(1), value + 1.0, value * 2.0)
    c = rc.compute((M,), lambda axis: substitute(value, {i: axis}), name="C")
    func = with_entry_conditions(rc.lower(rc.create_schedule(c.op), [A, c]))
    assert len(func.requires) <= 64


def test_the_message_names_the_point() -> None:
    module = _module(lambda i: rc.if_then_else((i % 2).equal(0), A[i + 1], 0.0), "interp")
    with pytest.raises(UserError) as caught:
        module(np.zeros(3, "f4"), np.zeros(5, "f4"))
    error = caught.value
    assert error.what == ("stage C reads index i + 1 = 3 of dimension 0 of A, which has 3 elements")
    assert "test_entry_points.py" in str(error.where)
    assert error.why == (
        "A[i + 1] needs for i in range(m) not truncmod(i, 2) == 0 or i + 1 < n, "
        "which fails for i = 2: m is 5 by dimension 0 of C; n is 3 by dimension 0 of A"
    )
    assert error.remedy == (
        "pass arrays and numbers whose sizes fit, or access it under a condition only"
    )


def test_a_text_with_such_a_requirement_gets_the_reason() -> None:
    loop = "for i in range(m) { C[i] = A[i & 3] }"
    text = "requires (for j in range(m) j & 3 < n)"
    func = with_entry_conditions(
        parse_func(f"func f(A: f32[n], C: f32[m] out) {text} {{ {loop} }}")
    )
    (requirement,) = func.requires
    assert requirement.origin is not None and requirement.origin.text == "A[i & 3]"
    again = with_entry_conditions(func)
    assert print_func(again) == print_func(func)


def test_certificates_know_what_is_stated() -> None:
    loop = "for i in range(m) { C[i] = A[i & 7] + A[i64(exp(f32(i)))] + D[i * i % 5] }"
    func = parse_func(f"func f(A: f32[n], D: f32[5], C: f32[m] out) {{ {loop} }}")
    assert dict(bounds_of(func).accesses) == {
        "A[i & 7]": Reason.AT_ENTRY,
        "A[i64(exp(f32(i)))]": Reason.NOT_STATED,
        "D[i * i % 5]": Reason.PROVED,
        "C[i]": Reason.PROVED,
    }
