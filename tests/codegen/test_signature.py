import pytest

from refcomp.codegen.signature import checks_of, machine_symbol, signature_of
from refcomp.foundation.artifacts import ScalarParam, evaluate_dim
from refcomp.foundation.dtype import F32, I64, as_dtype
from refcomp.foundation.errors import Unsupported
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Cast, IntImm, Mul, Select, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.stmt import Block
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.passes.check_accesses import check_accesses


def test_params_symbols_and_outputs():
    signature = signature_of(
        parse_func(
            "func f(A: f32[n, 64], B: bf16[64, m], C: i8[n, m] out, alpha: f16) "
            "{ C[0, 0] = i8(alpha) }"
        )
    )
    assert str(signature) == ("f(A: f32[n, 64], B: bf16[64, m], C: i8[n, m] (output), alpha: f16)")
    assert signature.symbols == ("n", "m")
    assert signature.params[3] == ScalarParam("alpha", as_dtype("f16"))


def test_the_status_of_checked_accesses_is_no_argument_of_a_caller():
    func = check_accesses(parse_func("func f(A: f32[n] out, x: f32) { A[3] = x }"))
    assert [param.name for param in func.params] == ["A", "x", "faults"]
    signature = signature_of(func)
    assert str(signature) == "f(A: f32[n] (output), x: f32)"
    assert signature.checks == checks_of(func)
    assert [(c.action, c.index) for c in signature.checks] == [("writes", "3")]


def test_compound_dimensions_are_computed_from_symbols():
    func = parse_func(
        "func f(A: f32[n], B: f32[(n + 3) // 4 * 2, n % 3, min(n, 5), max(n - 1, 0)] out) "
        "{ B[0, 0, 0, 0] = A[0] }"
    )
    shape = signature_of(func).params[1].shape
    assert [evaluate_dim(dim, {"n": 10}) for dim in shape] == [6, 1, 5, 9]


def _func(shape, *params):
    buffer = Buffer("A", F32, shape)
    return PrimFunc("f", (buffer, *params), Block(()), ("A",))


def test_a_converted_symbol_is_that_symbol():
    n = Var("n", as_dtype("i32"))
    signature = signature_of(_func((Cast(I64, n),)))
    assert signature.symbols == ("n",) and signature.params[0].shape == ("n",)


def test_names_that_repeat_are_told_apart():
    first, second = Var("n", I64), Var("n", I64)
    signature = signature_of(_func((first, second, Mul(first, second)), Var("A", I64)))
    assert signature.symbols == ("n", "n_2")
    assert [param.name for param in signature.params] == ["A", "A_2"]
    assert signature.params[0].shape == ("n", "n_2", ("mul", "n", "n_2"))


def test_a_dimension_no_caller_can_compute_is_refused():
    n = Var("n", I64)
    dim = Select(n > 3, n, IntImm(1, I64))
    with pytest.raises(Unsupported, match="a dimension of A is a Select"):
        signature_of(_func((dim,)))


@pytest.mark.parametrize("name", ["exp", "expf", "free", "memcpy", "pthread_create", "abs", "sinl"])
def test_names_of_the_c_library_are_avoided(name):
    assert machine_symbol(name) == f"{name}_"


@pytest.mark.parametrize("name", ["main", "matmul", "exp_", "softmax", "f", "expr"])
def test_other_names_are_kept(name):
    assert machine_symbol(name) == name


def test_hostile_names_are_mangled():
    symbol = machine_symbol('a"b c')
    assert symbol.replace("_", "").isalnum() and symbol != machine_symbol("a_b_c")
    assert signature_of(PrimFunc('a"b c', (), Block(()))).name == symbol


def test_requirements_become_conditions():
    func = parse_func(
        "func f(A: f32[n], k: i32) requires (i64(k) > 0, not n % 4 == 1, n >= 2, n == 0 or true) {}"
    )
    assert [*map(str, signature_of(func).requires)] == [
        "0 < k",
        "(n % 4 == 1) == 0",
        "2 <= n",
        "n == 0 or 1",
    ]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("i64(s + 1i32) < n", "i32(s + 1) < n"),
        ("i64(b * 2i8 // 3i8) < n", "i8(i8(b * 2) // 3) < n"),
        ("i64(i8(s)) < n", "i8(s) < n"),
        ("i64(u - 1u32) < i64(w)", "u32(u - 1) < i64(w)"),
        ("i64(u32(b)) < n", "u32(b) < n"),
        ("i64(b) + i64(u) < n", "b + u < n"),
        ("i64(min(w, 3u64)) < n", "i64(min(w, 3)) < n"),
    ],
)
def test_conditions_wrap_around_as_their_types_do(condition, text):
    params = "A: f32[n], s: i32, b: i8, u: u32, w: u64"
    func = parse_func(f"func f({params}) requires ({condition}) {{}}")
    (found,) = signature_of(func).requires
    assert str(found) == text
    by_name = {var.name: var for var in (*func.symbols, *func.params)}
    ends = {"s": (-(2**31), 2**31 - 1), "b": (-128, 127), "u": (0, 2**32 - 1), "w": (0, 2**64 - 1)}
    for end in (0, 1):
        sizes = {"n": 5} | {name: values[end] for name, values in ends.items()}
        values = {by_name[name]: size for name, size in sizes.items()}
        expected = evaluate_expr(func.requires[0].condition, values)
        assert evaluate_dim(found.test, sizes) == expected
