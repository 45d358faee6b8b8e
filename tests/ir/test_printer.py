"""The text of the loop IR: whole functions as golden files, names, and lines."""

from collections.abc import Callable

import pytest

from refcomp.foundation.dtype import BOOL, F32, I32, I64, as_dtype
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Broadcast, FloatImm, IntImm, Let, Ramp, Var
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.parser import parse_func, parse_program
from refcomp.ir.printer import (
    print_expr,
    print_func,
    print_func_with_lines,
    print_funcs,
    print_program,
    print_stmt,
)
from refcomp.ir.stmt import (
    Allocate,
    AtomicUpdate,
    Barrier,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LaunchKernel,
    LetStmt,
    Origin,
    ParallelRegion,
    Pragma,
    Prefetch,
    Stmt,
    Store,
)
from refcomp.ir.structure import structurally_equal
from refcomp.ir.verify import verify

N, M = Var("n", I64), Var("m", I64)
ZERO, HALF = IntImm(0, I64), FloatImm(0.5, F32)


def number(value: int) -> IntImm:
    return IntImm(value, I64)


def nested_func() -> PrimFunc:
    a, b, c = (Buffer(name, F32, (N, M)) for name in "ABC")
    scalar, t = Buffer("scalar", as_dtype("bf16"), ()), Buffer("T", F32, (number(4),), "local", 64)
    alpha = Var("alpha", F32)
    i, j, k = Var("i.outer", I64), Var("j", I64), Var("k", I32)
    t_store = BufferStore(t, (k,), BufferLoad(a, (i, ir.Cast(I64, k))))
    fill = For(k, IntImm(0, I32), IntImm(4, I32), "unrolled", t_store)
    value = BufferLoad(t, (j % 4,)) * alpha + BufferLoad(b, (i, j))
    store = BufferStore(c, (i, j), ir.Select(j < M - 1, value, -value))
    tail = BufferStore(c, (i, j), ir.Cast(F32, BufferLoad(scalar, ())))
    other = BufferStore(c, (i, ZERO), HALF)
    guarded = IfThenElse(ir.And(i * 4 < N, j > ZERO), store, IfThenElse(j == ZERO, tail, other))
    columns = For(j, number(2), number(8), "vectorized", guarded)
    body = Allocate(t, Block((fill, columns, Block((other,)), Block(()))))
    ahead = Block((Prefetch(a, (i + 1, ZERO)), Pragma("unroll_explicit", number(1), body)))
    rows = For(i, ZERO, (N + 3) // 4, "parallel", ahead)
    return PrimFunc("mixed.nested", (a, b, scalar, c, alpha), rows, ("C",))


def flat_func() -> PrimFunc:
    a, out = Buffer("A", F32, (N,)), Buffer("out", F32, (N,), alignment=32)
    i, x, y = Var("i", I64), Var("x", F32), Var("x", F32)
    index = Ramp(i * 8, number(1), 8)
    mask = ir.LT(index, Broadcast(N, 8))
    masked = Store(out, index, Load(a, index, mask) + Broadcast(HALF, 8), mask)
    whole = Let(y, Load(a, i), y * y + FloatImm(float("inf"), F32))
    scalar = Store(out, i, ir.IfThenElseExpr(Load(a, i) < x, whole, ir.Call("exp", (x,), F32)))
    body = LetStmt(x, HALF, Block((masked, scalar)))
    return PrimFunc("flat", (a, out), For(i, number(1), N, "parallel", body), ("out",))


def host_func() -> PrimFunc:
    flags, out = Buffer("flags", BOOL, (N,)), Buffer("out", as_dtype("u16"), (N,))
    task, tasks, i = Var("task", I64), Var("tasks", I64), Var("i", I64)
    value = ir.Cast(out.dtype, ir.Not(Load(flags, i)))
    loop = For(i, task * N // tasks, ir.Min(N, number(4)), "serial", Store(out, i, value))
    region = ParallelRegion("host.parallel0", (flags, out, N), task, tasks, loop)
    return PrimFunc("host", (flags, out), region, ("out",))


def device_func() -> PrimFunc:
    a, out = Buffer("A", F32, (N,)), Buffer("out", F32, (N,))
    count = Buffer("count", I64, (number(1),))
    tile, mine = Buffer("tile", F32, (number(64),), "shared"), Buffer("m", F32, (ZERO,), "local")
    bx, tx = Var("bx", I64), Var("tx", I64)
    fill = IfThenElse(bx * 64 + tx < N, Store(tile, tx, Load(a, bx * 64 + tx)))
    write = Store(out, bx * 64 + tx, Load(tile, number(63) - tx))
    update = AtomicUpdate("max", count, (ZERO,), tx)
    body = Allocate(tile, Allocate(mine, Block((fill, Barrier(), write, update))))
    threads = For(tx, ZERO, number(64), "threadIdx.x", body)
    groups = For(bx, ZERO, (N + 63) // 64, "blockIdx.x", threads)
    return PrimFunc("reverse.kernel", (a, out, count, N), groups, ("out", "count"))


def launch_func() -> PrimFunc:
    a, b = Buffer("A", F32, (N,)), Buffer("B", F32, (N,))
    t, k, one = Buffer("T", F32, (N,)), Var("k", I64), number(1)
    first = LaunchKernel("fill.kernel0", (a, t, N), (N, one, one), (number(64), one, one))
    grid = ((N + 63) // 64, one, one)
    again = LaunchKernel("add", (t, b, k), grid, (N, one, one), (N * 4, number(8)))
    body = Allocate(t, Block((first, For(k, ZERO, number(3), "serial", again))))
    return PrimFunc("launches", (a, b), body, ("B",))


FUNCS = {
    "nested": nested_func,
    "flat": flat_func,
    "host": host_func,
    "device": device_func,
    "launch": launch_func,
}


@pytest.mark.parametrize("level", FUNCS)
def test_a_whole_function(level: str, golden: Callable[[str, str], None]):
    func = FUNCS[level]()
    verify(func, level)
    golden(f"ir/{level}.txt", print_func(func))
    assert structurally_equal(func, parse_func(print_func(func)))


def test_a_program_is_its_functions():
    program = Program(launch_func(), (device_func(),))
    text = print_program(program)
    assert text == print_funcs([program.host, *program.kernels])
    again = parse_program(text)
    assert structurally_equal(again.host, program.host)
    assert structurally_equal(again.kernel("reverse.kernel"), program.kernels[0])


def test_several_functions_have_an_empty_line_between_them():
    text = print_funcs([flat_func(), host_func()])
    assert text == print_func(flat_func()) + "\n" + print_func(host_func())


def test_each_statement_is_found_on_the_line_it_begins_on():
    func = nested_func()
    text, begins = print_func_with_lines(func)
    lines = text.splitlines()
    words = {
        **{For: "for", Allocate: "alloc", BufferStore: " = ", IfThenElse: "if (", Block: "block"},
        **{Prefetch: "prefetch", Pragma: "pragma"},
    }
    assert begins[2] is func.body
    for line, stmt in begins.items():
        assert words[type(stmt)] in lines[line - 1]
    assert len(begins) == sum(any(word in line for word in words.values()) for line in lines)


def test_names_are_unique_in_scope_and_used_again_after_it():
    def loop(body: Stmt) -> Stmt:
        return For(Var("i", I64), ZERO, number(2), "serial", body)

    twice = Block((loop(loop(Block(()))), loop(Block(()))))
    assert [line.strip() for line in print_stmt(twice).splitlines() if "for" in line] == [
        "for i in range(2) {",
        "for i_1 in range(2) {",
        "for i in range(2) {",
    ]


@pytest.mark.parametrize("name", ["for", "f32", "a b", "x\n}", "", "f32.inf", "# no", "1"])
def test_hostile_names_print_and_read_back(name):
    n, i = Var(name, I64), Var(name, I64)
    a = Buffer(name, F32, (n,))
    func = PrimFunc("f", (a,), For(i, ZERO, n, "serial", BufferStore(a, (i,), HALF)), (name,))
    text = print_func(func)
    assert len(text.splitlines()) == 5
    assert structurally_equal(parse_func(text), func)


def test_free_names_stand_for_themselves_and_stay_apart():
    a, b = Var("x", I64), Var("x", I64)
    assert print_expr(a - b + a) == "x - x_1 + x"
    bound = Var("x", I64)
    assert print_expr(Let(bound, number(1), bound + a)) == "(let x_1: i64 = 1 in x_1 + x)"
    buffer = Buffer("A", F32, (N,))
    assert print_stmt(Store(buffer, a, Load(buffer, b))) == "A@[x] = A@[x_1]"


def test_a_name_bound_twice_on_a_path_is_printed_apart():
    x = Var("x", I64)
    assert print_expr(Let(x, x, x)) == "(let x: i64 = x in x)"
    inner = Let(x, number(1), x)
    assert print_expr(Let(x, number(2), inner + x)) == (
        "(let x: i64 = 2 in (let x_1: i64 = 1 in x_1) + x)"
    )


def test_the_origin_is_no_part_of_the_text():
    assert print_stmt(Block((), Origin("C"))) == print_stmt(Block(()))


@pytest.mark.search
def test_deep_trees_print_without_recursion():
    expr = N
    for _ in range(20_000):
        expr = ir.Sub(number(1), expr)
    assert print_expr(expr).count("(") == 19_999
    stmt: Stmt = Block(())
    for _ in range(5_000):
        stmt = IfThenElse(ir.EQ(N, ZERO), stmt)
    assert print_stmt(stmt).count("if (n == 0) {") == 5_000
