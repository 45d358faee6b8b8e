"""Loop IR says what sizes it needs, and what leaves its buffer at all sizes is refused."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.arith import Facts, prove
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc, Requirement
from refcomp.ir.parser import parse_expr, parse_func
from refcomp.ir.printer import print_func, print_requirement
from refcomp.ir.rewrite import with_fields
from refcomp.lowering.entry_conditions import Given, with_entry_conditions


def _required(params: str, body: str) -> list[str]:
    func = with_entry_conditions(parse_func(f"func f({params}) {{ {body} }}"))
    return [print_requirement(requirement) for requirement in func.requires]


VECTORS = "A: f32[n], C: f32[m] out, k: i64"


@pytest.mark.parametrize(
    ("body", "conditions"),
    [
        ("for i in range(m) { C[i] = A[i] }", ["m - 1 < n"]),
        ("for i in range(m) { C[i] = A[i] C[i] = A[i] + 1.0f32 }", ["m - 1 < n"]),
        ("for i in range(n) { C[i] = A[i] }", ["n - 1 < m"]),
        ("for i in range(k, extent=2) { C[i] = 0.0f32 }", ["0 <= k", "k + 1 < m"]),
        (
            "for i in range(m) { let j: i64 = i + k { C[i] = A[j] } }",
            ["m <= 0 or 0 <= k", "m <= 0 or k + m - 1 < n"],
        ),
        ("let j: i64 = k + 1 { C[0] = A[j + 1] }", ["0 < m", "0 <= k + 2", "k + 2 < n"]),
        ("for i in range(8) { let j: i64 = i * 3 { C[0] = A[j % 8] } }", ["0 < m", "7 < n"]),
        ("if (A[3] < 1.0f32) { C[k] = 0.0f32 }", ["3 < n"]),
        (
            "for i in range(m) { atomic add C[i] with A[k] }",
            ["m <= 0 or 0 <= k", "m <= 0 or k < n"],
        ),
        ("alloc T: f32[k] { for i in range(m) { T[i] = 0.0f32 } }", ["m <= 0 or m - 1 < k"]),
        ("for i in range(m) { pragma unroll 1 { C[i] = A[0] } }", ["m <= 0 or 0 < n"]),
        # On a condition that is followed:
        (
            "if (k < 4) { C[0] = A[k] }",
            ["4 - k <= 0 or 0 < m", "4 - k <= 0 or 0 <= k", "4 - k <= 0 or k < n"],
        ),
        ("for i in range(m) { if (i < 4) { C[i] = A[i] } }", ["min(m - 1, 3) < n"]),
        (
            "for i in range(m) { if (i < n) { } else { C[i] = A[i - n] } }",
            ["m - n - 1 < n"],
        ),
        ("for i in range(9) { if (i >= 2 and i < 7) { C[0] = A[i * 2] } }", ["0 < m", "12 < n"]),
        (
            "for i in range(m) { C[i] = if_then_else(i == 7, A[i], 0.0f32) }",
            ["m - 7 <= 0 or 7 < n"],
        ),
        (
            "for i in range(m) { C[i] = select(k + 1 > i * 2, A[i], 0.0f32) }",
            ["min(m - 1, k // 2) < n"],
        ),
        ("for i in range(9) { if (i > 12) { C[i] = A[-5] } }", []),
        ("if (n < 0) { C[0] = A[-5] }", []),
        ("if (k < 0) { C[k] = 0.0f32 }", ["0 - k <= 0 or 0 <= k", "0 - k <= 0 or k < m"]),
        # On another condition, or at places that nobody knows:
        (
            "for i in range(m) { if (i * k < n) { C[i] = A[9] } }",
            ["for i in range(m) not i * k < n or 9 < n"],
        ),
        (
            "for i in range(m) { for j in range(4) { if (i * 4 + j < n) { C[i] = A[9] } } }",
            ["for i in range(m) for j in range(4) not i * 4 + j < n or 9 < n"],
        ),
        (
            "for i in range(m) { let x: i64 = i * 2 { if (i < 3) { C[0] = A[x] } } }",
            ["for i in range(m) not i < 3 or i * 2 < n"],
        ),
        ("for i in range(m) { if (i < 3 or k < 2) { C[i] = A[9] } }", ["m <= 0 or 9 < n"]),
        ("for i in range(m) { if (A[i] < 3.0f32) { C[i] = A[9] } }", ["m - 1 < n"]),
        ("for i in range(m) { if (i < n) { C[i] = A[i] } }", []),
        ("for i in range(m) { C[i] = if_then_else(i < n, A[i], 0.0f32) }", []),
        ("for i in range(m) { C[i] = select(i < n, A[i], 0.0f32) }", []),
        ("for i in range(m) { for j in range(i) { C[j] = A[j] } }", ["m - 2 < n"]),
        ("for i in range(m) { for j in range(i + 1) { C[j] = A[i - j] } }", ["m - 1 < n"]),
        (
            "for i in range(m) { for j in range(i * m) { C[i] = A[j] } }",
            ["for i in range(m) for j in range(i * m) j < n"],
        ),
        ("for i in range(m) { for j in range(i64(C[i])) { C[i] = A[j] } }", []),
        ("for i in range(m) { C[i] = A[i64(C[i])] }", []),
        ("for i in range(m) { C[i] = 0.0f32 prefetch A[i + 9] }", []),
        ("for i in range(0) { C[i] = A[i + 9] }", []),
    ],
)
def test_conditions_of_loops(body: str, conditions: list[str]) -> None:
    assert _required(VECTORS, body) == conditions


def test_what_is_said_already_is_not_said_again() -> None:
    text = "func f(A: f32[n], C: f32[m] out) requires (m < n) { for i in range(m) { C[i] = A[i] } }"
    func = parse_func(text)
    assert with_entry_conditions(func) is func


def test_a_text_that_says_it_gets_the_reason() -> None:
    loop = "for i in range(m) { C[i] = A[i] }"
    text = f"func f(A: f32[n], C: f32[m] out) requires (m - 1 < n) {{ {loop} }}"
    func = with_entry_conditions(parse_func(text))
    (requirement,) = func.requires
    assert requirement.origin is not None
    assert requirement.origin.by == "`C[i] = A[i]` reads"
    assert print_func(func) == print_func(parse_func(text))


@pytest.mark.parametrize(
    ("body", "what", "where"),
    [
        (
            "for i in range(8) { for j in range(65) { C[i] = A[i, j] } }",
            "f reads index 64 of dimension 1 of A",
            "C[i] = A[i, j], in for j in range(65)",
        ),
        (
            "for i in range(9) { C[i] = 0.0f32 }",
            "f writes index 8 of dimension 0 of C",
            "C[i] = 0.0f32, in for i in range(9)",
        ),
        (
            "for i in range(8) { atomic add C[i - 1] with 1.0f32 }",
            "f updates index -1 of dimension 0 of C",
            "atomic add C[i - 1] with 1.0f32, in for i in range(8)",
        ),
        (
            "if (A[0, 64] < 0.0f32) { C[0] = 0.0f32 }",
            "f reads index 64 of dimension 1 of A",
            "if (A[0, 64] < 0.0f32) {",
        ),
        (
            "for i in range(n) { C[0] = A[0, 0] + B[i + 1] }",
            "f reads index n of dimension 0 of B",
            "C[0] = A[0, 0] + B[i + 1], in for i in range(n)",
        ),
    ],
)
def test_what_leaves_its_buffer_at_all_sizes_is_refused(body: str, what: str, where: str) -> None:
    func = parse_func(f"func f(A: f32[8, 64], B: f32[n], C: f32[8] out) {{ {body} }}")
    with pytest.raises(UserError) as caught:
        rc.build(func, target="interp")
    assert (caught.value.what, caught.value.where) == (what, where)
    assert "has the elements 0 .. " in str(caught.value.why)
    assert "access it under a condition" in str(caught.value.remedy)


def test_a_function_of_the_flat_level_is_left_alone() -> None:
    func = parse_func("func f(A: f32[4, 4] out) { atomic add A[15] with 1.0f32 A@[99] = 1.0f32 }")
    assert with_entry_conditions(func) is func


def _vectors(n: int, m: int) -> list[np.ndarray]:
    return [np.ones(n, "f4"), np.zeros(m, "f4")]


@pytest.mark.llvm
@pytest.mark.parametrize(
    "target", ["interp", "llvm", pytest.param("opencl", marks=pytest.mark.pocl)]
)
def test_a_schedule_is_checked_at_entry_on_each_target(target: str) -> None:
    n, m = rc.var("n"), rc.var("m")
    source = rc.placeholder((n,), name="A")
    output = rc.compute((m,), lambda i: source[i] * 2.0, name="C")
    schedule = rc.create_schedule(output.op)
    if target == "opencl":
        outer, inner = schedule[output].split(output.op.axis[0], 4)
        schedule[output].bind(outer, rc.thread_axis("blockIdx.x"))
        schedule[output].bind(inner, rc.thread_axis("threadIdx.x"))
    function = rc.build(schedule, [source, output], target)
    device = rc.device("opencl", 0) if target == "opencl" else rc.cpu(0)
    right = [rc.array(a, device) for a in _vectors(6, 6)]
    function(*right)
    assert (right[1].asnumpy() == 2).all()
    with pytest.raises(UserError) as caught:
        function(*(rc.array(a, device) for a in _vectors(5, 6)))
    assert caught.value.what == (
        "compute C reads index m - 1 = 5 of dimension 0 of A, which has 5 elements"
    )
    assert "test_entry_conditions.py:" in str(caught.value.where)


@pytest.mark.llvm
def test_conditions_travel_with_module_files(tmp_path) -> None:
    func = parse_func("func f(A: f32[n], C: f32[m] out) { for i in range(m) { C[i] = A[i] } }")
    rc.build(func).save(str(tmp_path / "f.module"))
    loaded = rc.load_module(str(tmp_path / "f.module"))
    loaded(*_vectors(5, 5))
    with pytest.raises(UserError, match="` reads index m - 1 = 5 of dimension 0 of A"):
        loaded(*_vectors(5, 6))


def test_a_negative_scalar_is_no_extent() -> None:
    n, length = rc.var("n"), rc.var("length")
    source = rc.placeholder((n, 4), name="A")
    r = rc.reduce_axis((0, length), name="r")
    output = rc.compute((n,), lambda i: rc.sum(source[i, r], axis=r), name="C")
    function = rc.build(rc.create_schedule(output.op), [source, length, output], "interp")
    result = np.zeros(3, "f4")
    function(np.ones((3, 4), "f4"), 0, result)
    assert (result == 0).all()
    function(np.ones((3, 4), "f4"), 4, result)
    assert (result == 4).all()
    for wrong, what in (
        (-1, "length = -1 is negative, and is an extent of compute C"),
        (5, "compute C reads index length - 1 = 4 of dimension 1 of A, which has 4 elements"),
    ):
        with pytest.raises(UserError) as caught:
            function(np.ones((3, 4), "f4"), wrong, result)
        assert caught.value.what == what


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_scalars_of_u64_are_compared_as_the_code_uses_them(target: str) -> None:
    n, p = rc.var("n"), rc.var("p")
    length, step = rc.var("length", "uint64"), rc.var("step", "uint64")
    source = rc.placeholder((p,), name="A")
    r = rc.reduce_axis((0, length), name="r")
    output = rc.compute((n,), lambda i: rc.sum(source[3 + r * step], axis=r), name="C")
    function = rc.build(rc.create_schedule(output.op), [source, length, step, output], target)
    for given in [(4, 1, 7), (4, 2**64 - 1, 4), (0, 99, 0)]:
        result = np.ones(2, "f4")
        function(np.ones(given[2], "f4"), *given[:2], result)
        assert (result == given[0]).all()
    for given, what in [
        ((4, 1, 6), "compute C reads index "),
        ((5, 2**64 - 1, 4), "compute C reads index "),
        ((2**64 - 1, 1, 4), "i64(length) = -1 is negative, and is an extent of compute C"),
    ]:
        with pytest.raises(UserError) as caught:
            function(np.ones(given[2], "f4"), *given[:2], np.ones(2, "f4"))
        assert caught.value.what.startswith(what), caught.value


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_scalars_of_i32_wrap_around_as_the_code_does(target: str) -> None:
    body = "for i in range(2) { C[i] = A[i64(s + 1i32) + i] }"
    func = parse_func(f"func f(A: f32[n], s: i32, C: f32[2] out) {{ {body} }}")
    function = rc.build(func, target)
    result = np.zeros(2, "f4")
    function(np.arange(4, dtype="f4"), 1, result)
    assert result.tolist() == [2, 3]
    with pytest.raises(UserError) as caught:
        function(np.ones(4, "f4"), 2, result)
    assert caught.value.what == (
        "`C[i] = A[i64(s + 1i32) + i]` reads index i32(s + 1) + 1 = 4 of dimension 0 of A, "
        "which has 4 elements"
    )
    with pytest.raises(UserError, match=r"reads index i32\(s \+ 1\) = -2147483648 of dimension 0"):
        function(np.ones(4, "f4"), 2**31 - 1, result)


def _proofs_of(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return how many requirements two rounds find for `count` arrays, and what they assume."""
    params = ", ".join(f"A{k}: f32[n{k}]" for k in range(count))
    stores = " ".join(f"C[i] = A{k}[i]" for k in range(count))
    func = parse_func(f"func f({params}, C: f32[m] out) {{ for i in range(m) {{ {stores} }} }}")
    first = with_entry_conditions(func)
    # The texts of other requirements, so that nothing is dropped without a proof.
    weaker = [
        with_fields(r, condition=parse_expr(f"m - 2 < n{k}", _names(func)))
        for k, r in enumerate(first.requires)
    ]
    assumed = 0

    def assume(self: Facts, condition: Expr, plain=Facts.assume) -> Facts:
        nonlocal assumed
        assumed += 1
        return plain(self, condition)

    with monkeypatch.context() as patched:
        patched.setattr(Facts, "assume", assume)
        second = with_entry_conditions(with_fields(func, requires=tuple(weaker)))
    return len(second.requires), assumed


def _names(func: PrimFunc) -> dict[str, Var]:
    return {var.name: var for var in func.symbols}


@pytest.mark.search
def test_the_cost_of_a_requirement_does_not_grow_with_their_number(monkeypatch) -> None:
    few, of_few = _proofs_of(40, monkeypatch)
    many, of_many = _proofs_of(160, monkeypatch)
    assert (few, many) == (80, 320)
    assert of_many <= 4 * of_few


def test_of_many_requirements_those_of_the_buffer_are_assumed() -> None:
    func = parse_func(
        "func f(A: f32[n], B: f32[k], C: f32[m] out) { for i in range(m) { C[i] = A[i] + B[i] } }"
    )
    first, second = with_entry_conditions(func).requires
    names = _names(func)
    others = [Requirement(parse_expr(f"m != {k + 99}", names), second.origin) for k in range(50)]
    facts = Facts().nonnegative(names["n"]).nonnegative(names["m"])
    given = Given((first, *others))
    assert prove(parse_expr("m - 2 < n", names), given.about("A", "A[i]", facts))
    assert prove(parse_expr("m != 148", names), given.about("B", "B[7]", facts))
    assert not prove(parse_expr("m != 148", names), given.about("A", "A[i]", facts))
    named = Given((first, *(with_fields(first, condition=r.condition) for r in others)))
    assert prove(parse_expr("m - 2 < n", names), Given((first, first)).about("C", "", facts))
    assert prove(parse_expr("m != 148", names), named.about("A", "other", facts))
    assert not prove(parse_expr("m != 99", names), named.about("A", "other", facts))


@pytest.mark.llvm
def test_a_guard_beside_a_read_is_to_be_nested(tmp_path) -> None:
    nested = "nest two conditions, as both sides of and/or are evaluated: if_then_else("
    body = "for i in range(m) { if (i < n and A[i] > 0.0f32) { C[i] = 1.0f32 } }"
    func = parse_func(f"func f(A: f32[n], C: f32[m] out) {{ {body} }}")
    n, m = rc.var("n"), rc.var("m")
    a = rc.placeholder((n,), name="A")
    c = rc.compute((m,), lambda i: rc.if_then_else(rc.all(i < n, a[i] > 0), 1.0, 0.0), name="C")
    for function in (
        rc.build(func, "interp"),
        rc.build(rc.create_schedule(c.op), [a, c], "interp"),
    ):
        with pytest.raises(UserError) as caught:
            function(*_vectors(2, 3))
        assert f"sizes fit, or {nested}" in str(caught.value.remedy)
    text = body.replace("i < n and A[i]", "i < 4 and A[i + n]")
    with pytest.raises(UserError) as caught:
        rc.build(parse_func(f"func f(A: f32[n], C: f32[m] out) {{ {text} }}"), "interp")
    assert f"A[i + n], or {nested}" in str(caught.value.remedy)
    kept = "for i in range(m) { if (i < n) { if (A[i] > 0.0f32) { C[i] = 1.0f32 } } }"
    rc.build(parse_func(f"func f(A: f32[n], C: f32[m] out) {{ {kept} }}"), "interp")(
        *_vectors(2, 3)
    )


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_a_call_without_results_needs_no_sizes_that_are_multiplied_by_zero(target: str) -> None:
    loops = "for i in range(n) { for j in range(m) { E[i] = D[i * m + j] } }"
    head = "func f(C: f32[n], D: f32[n * m], E: f32[n] out"
    function = rc.build(parse_func(f"{head}) {{ {loops} }}"), target)
    function(*_empty(3))
    result = np.zeros(2, "f4")
    function(np.ones(2, "f4"), np.arange(6, dtype="f4"), result)
    assert result.tolist() == [2, 5]
    with pytest.raises(UserError, match="dimension 0 of argument D .* is 4, expected n \\* m = 0"):
        function(*_empty(1), np.ones(4, "f4"), *_empty(1))
    shown = rc.build(parse_func(f"{head}, F: i64[1] out) {{ {loops} F[0] = m }}"), target)
    with pytest.raises(UserError, match="the size of m does not follow from the shapes"):
        shown(*_empty(3), np.zeros(1, "i8"))


def _empty(count: int) -> list[np.ndarray]:
    return [np.zeros(0, "f4") for _ in range(count)]
