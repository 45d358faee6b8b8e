"""Certificates hold for right schedules, and name the step that seeded bugs make guilty."""

import re

import pytest

import refcomp as rc
from refcomp.certificates import certify, certify_function, judge
from refcomp.certificates import versions as versions_module
from refcomp.certificates.arguments import Arguments
from refcomp.certificates.search import Search
from refcomp.driver.steps import PipelineStep
from refcomp.foundation.dtype import F32, as_dtype
from refcomp.foundation.errors import CompilerBug, Unsupported, UserError
from refcomp.ir.expr import Cast
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import map_children, memoised, walk, with_fields
from refcomp.ir.stmt import CALLS, BufferStore, block
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.evaluate import EvaluateError
from tests.properties.seeded_bugs import INTERPRETED, SeededBug, switched_on


def matmul(factor: int = 3):
    n, m = rc.var("n"), rc.var("m")
    a, b = rc.placeholder((n, 8), name="A"), rc.placeholder((8, m), name="B")
    k = rc.reduce_axis((0, 8), name="k")
    c = rc.compute((n, m), lambda i, j: rc.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = rc.compute((n, m), lambda i, j: rc.exp(c[i, j]) / (c[i, j] + 1.0), name="D")
    s = rc.create_schedule(d)
    outer, inner = s[c].split(k, factor=factor)
    s[c].reorder(inner, outer, *c.op.axis)
    s[c].compute_at(s[d], d.op.axis[0])
    s[d].vectorize(s[d].split(d.op.axis[1], factor=4)[1])
    return s, [a, b, d]


def seeded(name: str) -> SeededBug:
    (bug,) = [bug for bug in INTERPRETED if bug.name == name]
    return bug


@pytest.mark.search
def test_a_right_schedule_is_certified_by_its_first_and_last_program():
    certificate = certify(*matmul(), name="product")
    assert certificate.holds
    assert str(certificate) == "product: certified, 4 programs agree"
    assert certificate.report().endswith("\n  bounds: 8 accesses: 8 proved")
    last = "the last program, of introduce_lets"
    assert certificate.compared == ("the first program", last) * 2  # of two sets of sizes
    certificate.require()


@pytest.mark.search
@pytest.mark.parametrize("name", ["llvm", "interp"])
def test_three_programs_are_interpreted_for_each_set_of_sizes(name, monkeypatch):
    runs = []
    monkeypatch.setattr(judge, "interpret", lambda *args: (runs.append(args), interpret(*args)))
    assert certify(*matmul(), kind=name).holds
    assert len(runs) == 2 * 3


@pytest.mark.search
def test_every_step_compares_each_primitive_and_each_pass():
    certificate = certify(*matmul(), every_step=True)
    assert certificate.holds
    assert "s[C].split(k, factor=3)" in certificate.compared
    assert "s[D].vectorize(j.inner)" in certificate.compared
    assert "vectorize_loops" in certificate.compared


@pytest.mark.search
@pytest.mark.parametrize(
    ("bug", "guilty", "told"),
    [
        ("lost tail guard", "s[C].split(k, factor=3), at ", "index 8 in dimension 1 of A is out"),
        ("split rounds down", "s[C].split(k, factor=3), at ", r"D\[0, 0\] is \d+, expected \d+"),
        ("missing initialisation of a reduction", "lowering", "element 0 of C is read, never wr"),
        ("region one element short", "s[C].compute_at(s[D], i), at ", "is out of range"),
        ("wrong stride", "pass flatten_storage", "out of range"),
    ],
)
def test_the_guilty_step_is_named(bug, guilty, told):
    with switched_on(seeded(bug)):
        certificate = certify(*matmul(), name="product")
    assert not certificate.holds
    assert certificate.guilty.startswith(guilty)
    assert certificate.sizes
    assert re.search(told, str(certificate))
    with pytest.raises(CompilerBug, match="changes the result of product"):
        certificate.require()


@pytest.mark.search
@pytest.mark.parametrize("function", ["rsqrt", "sigmoid", "tanh", "exp"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_functions_that_a_pass_computes_in_another_way_raise_no_alarm(function, dtype):
    n = rc.var("n")
    a = rc.placeholder((n,), dtype, name="A")
    b = rc.compute((n,), lambda i: getattr(rc, function)(rc.abs(a[i]) + 1), name="B")
    certificate = certify(rc.create_schedule(b), [a, b], every_step=True)
    assert certificate.holds, str(certificate)


@pytest.mark.search
def test_licensed_fused_multiply_adds_raise_no_alarm():
    with rc.build_options(contract=True):
        certificate = certify(*matmul(), every_step=True)
    assert certificate.holds, str(certificate)
    assert "fuse_multiply_add" in certificate.compared


def test_what_the_field_cannot_see_is_found_by_the_error_bounds():
    """A rounding to f16 leaves field elements alone."""
    a = rc.placeholder((5,), name="A")
    b = rc.compute((5,), lambda i: a[i] * 3.0 + 1.0, name="B")
    s = rc.create_schedule(b)
    func = rc.lower(s, [a, b])
    store = next(node for node in walk(func.body) if isinstance(node, BufferStore))
    value = Cast(F32, Cast(as_dtype("float16"), store.value))
    rounded = func.with_body(with_fields(func.body, body=with_fields(store, value=value)))
    given = Arguments((a, b), {})
    made = list(versions_module.versions(rounded, "llvm"))
    difference = Search(made, "llvm", judge.judge_of_tensors(given), []).find(False)
    assert "within" in str(difference[1])
    assert judge.judge_of_tensors(given).on_field(rounded) is None


@pytest.mark.search
def test_c_functions_stand_for_themselves():
    n = rc.var("n")
    a = rc.placeholder((n,), "float64", name="A")
    b = rc.compute((n,), lambda i: rc.call_pure_extern("float64", "cbrt", a[i]) + 1, name="B")
    s = rc.create_schedule(b)
    s[b].split(b.op.axis[0], factor=3)
    assert certify(s, [a, b], every_step=True).holds
    with switched_on(seeded("lost tail guard")):
        assert not certify(s, [a, b]).holds
    c = rc.compute((n,), lambda i: rc.call_pure_extern("int32", "lround", a[i]), name="C")
    with pytest.raises(Unsupported, match="lround makes an integer of floats"):
        certify(rc.create_schedule(c), [a, c])


def test_scalars_are_arguments():
    n, alpha, beta = rc.var("n"), rc.var("alpha", "float32"), rc.var("beta", "int32")
    a = rc.placeholder((n,), name="A")
    b = rc.compute((n,), lambda i: a[i] * alpha + beta.astype("float32"), name="B")
    assert certify(rc.create_schedule(b), [a, b, alpha, beta], every_step=True).holds


def test_a_schedule_for_a_gpu_is_certified_with_its_barriers():
    n = rc.var("n")
    a = rc.placeholder((n, 8), name="A")
    t = rc.compute((n, 8), lambda i, j: a[i, j] * 2.0, name="T")
    b = rc.compute((n, 8), lambda i, j: t[i, 7 - j] + t[i, j], name="B")
    s = rc.create_schedule(b)
    i, j = b.op.axis
    s[b].bind(i, rc.thread_axis("blockIdx.x"))
    s[b].bind(j, rc.thread_axis("threadIdx.x"))
    s[t].set_scope("shared")
    s[t].compute_at(s[b], i)
    s[t].bind(t.op.axis[1], rc.thread_axis("threadIdx.x"))
    certificate = certify(s, [a, b])
    assert certificate.holds, str(certificate)
    assert certificate.compared[-1] == "the last program, of introduce_lets"


def test_a_prefix_that_a_pass_refuses_is_no_step():
    """Local memory at the root is refused only when kernels are split off."""
    a = rc.placeholder((6,), name="A")
    b = rc.compute((6,), lambda i: a[i] + 1, name="B")
    s = rc.create_schedule(b)
    outer, inner = s[b].split(b.op.axis[0], factor=2)
    s[b].bind(outer, rc.thread_axis("blockIdx.x"))
    s[b].bind(inner, rc.thread_axis("threadIdx.x"))
    copy = s.cache_read(a, "local", [b])
    s[copy].compute_at(s[b], inner)
    certificate = certify(s, [a, b], every_step=True)
    assert certificate.holds, str(certificate)
    assert "s[A].cache_read(0, local, [s[B]])" not in certificate.compared
    assert "s[A.local].compute_at(s[B], i.inner)" in certificate.compared


def test_kernels_are_certified_after_the_split_too():
    a = rc.placeholder((6,), "bfloat16", name="A")
    b = rc.compute((6,), lambda i: rc.exp(a[i]), name="B")
    s = rc.create_schedule(b)
    s[b].bind(b.op.axis[0], rc.thread_axis("threadIdx.x"))
    certificate = certify(s, [a, b], every_step=True)
    assert certificate.holds, str(certificate)
    assert certificate.compared[-2:] == ("lower_intrinsics", "lower_bfloat16")


def test_a_large_computation_is_stood_in_for():
    a = rc.placeholder((1000, 1000), name="A")
    b = rc.compute((1000, 1000), lambda i, j: a[i, j] * 2, name="B")
    s = rc.create_schedule(b)
    s[b].split(b.op.axis[1], factor=3)
    certificate = certify(s, [a, b])
    assert certificate.holds
    assert certificate.sizes == {"B.i": 7, "B.j": 7}
    with switched_on(seeded("lost tail guard")):
        certificate = certify(s, [a, b])
    assert "s[B].split(j, factor=3), at " in str(certificate)
    assert "(B.i = 7, B.j = 7)" in str(certificate)


def test_what_has_no_stand_in_is_refused():
    a, at = rc.placeholder((3000, 3000), name="A"), rc.placeholder((3000,), "int32", name="I")
    t = rc.compute((3000, 3000), lambda i, j: a[i, j] + 1, name="T")
    b = rc.compute((3000,), lambda i: t[at[i], at[i]], name="B")
    with pytest.raises(Unsupported, match="B computes 9003000 values, too many") as caught:
        certify(rc.create_schedule(b), [a, at, b])
    assert "symbolic extents" in caught.value.remedy


def scanned(tile: int = 3):
    """Rows from the rows before: a sum of the last one, and what an input adds."""
    t, n = rc.var("t"), rc.var("n")
    x, state = rc.placeholder((t, n), name="X"), rc.placeholder((t, n), name="state")
    init = rc.compute((1, n), lambda _, i: x[0, i], name="init")
    k = rc.reduce_axis((0, n), "k")
    dense = rc.compute((t, n), lambda t, i: rc.sum(state[t - 1, k] * x[t, i], axis=k), name="D")
    update = rc.compute((t, n), lambda t, i: rc.tanh(dense[t, i]) + x[t, i], name="U")
    rows = rc.scan(init, update, state, inputs=[x], name="S")
    s = rc.create_schedule(rows)
    outer, _ = s[update].split(update.op.axis[1], factor=tile)
    s[dense].split(dense.op.reduce_axis[0], factor=4)
    s[dense].compute_at(s[update], outer)
    return s, [x, rows]


def between(statement, dtype="float32"):
    """E = extern(T) / 3 of T = A * 2, both split."""
    n = rc.var("n")
    a = rc.placeholder((n,), dtype, name="A")
    t = rc.compute((n,), lambda i: a[i] * 2, name="T")
    e = statement(t) if isinstance(statement, rc.hybrid.HybridFunction) else rc.extern(
        (n,), [t], statement, name="E"
    )  # fmt: skip
    b = rc.compute((n,), lambda i: e[i] / 3 + t[i], name="B")
    s = rc.create_schedule(b)
    s[t].split(t.op.axis[0], factor=4)
    s[b].split(b.op.axis[0], factor=4)
    return s, [a, b]


@rc.hybrid.script
def running_mean(a):
    c = output_tensor(a.shape, "float32")  # noqa: F821
    c[0] = a[0]
    for i in range(1, a.shape[0]):
        c[i] = (c[i - 1] + a[i]) * 0.5
    return c


def _unknown(ins, outs):
    return rc.call_packed("tests.nowhere", *ins, *outs, 3)


def _unknown_in_c(ins, outs):
    return rc.call_extern("int32", "no_such_function", outs[0].access_ptr("w"), *ins)


def _reversed(ins, outs):
    ib, (n,) = rc.ir_builder.create(), ins[0].shape
    with ib.for_range(0, n, name="y") as y:
        ib.emit(outs[0].vstore(y, ins[0][n - 1 - y] * 0.1))
    return ib.get()


_STATEMENTS = [_unknown, _unknown_in_c, _reversed, running_mean]


@pytest.mark.search
def test_a_scan_is_certified_in_both_algebras():
    certificate = certify(*scanned(), every_step=True)
    assert certificate.holds, str(certificate)
    assert "s[D].compute_at(s[U], i.outer)" in certificate.compared
    _, args = scanned()
    sizes = dict(zip(args[0].shape, (5, 3), strict=True))
    found = judge.judge_of_tensors(Arguments(tuple(args), sizes))
    error = found.bounded[1].error
    assert (error[1:] > 0).all() and error.max() < 1e-5


@pytest.mark.search
@pytest.mark.parametrize(
    ("bug", "guilty", "told"),
    [
        ("lost tail guard", r"s\[D\].split\(k, factor=4\), at ", "of S is out of range"),
        ("wrong stride", "pass flatten_storage", "of X is out of range"),
        ("missing initialisation of a reduction", "lowering", "of D is read, never written"),
    ],
)
def test_the_guilty_step_of_a_scan_is_named(bug, guilty, told):
    with switched_on(seeded(bug)):
        certificate = certify(*scanned())
    assert re.match(guilty, certificate.guilty) and told in str(certificate)


def _rows_by_kernels():
    """Each row by a kernel, and the first one, too."""
    t, n = rc.var("t"), rc.var("n")
    x, state = rc.placeholder((t, n), name="X"), rc.placeholder((t, n), name="state")
    init = rc.compute((1, n), lambda t, i: x[t, i] * 2.0, name="init")
    update = rc.compute((t, n), lambda t, i: state[t - 1, n - 1 - i] + x[t, i], name="U")
    rows = rc.scan(init, update, state, name="S")
    s = rc.create_schedule(rows)
    for tensor in (init, update):
        outer, inner = s[tensor].split(tensor.op.axis[1], factor=4)
        s[tensor].bind(outer, rc.thread_axis("blockIdx.x"))
        s[tensor].bind(inner, rc.thread_axis("threadIdx.x"))
    return s, [x, rows]


@pytest.mark.search
def test_a_scan_by_kernels_is_certified():
    certificate = certify(*_rows_by_kernels(), every_step=True)
    assert certificate.holds, str(certificate)
    assert "split_host_device" in certificate.compared
    with switched_on(seeded("lost tail guard")):
        certificate = certify(*_rows_by_kernels())
    # Before that step the host would have to compute: no program for a GPU to be told guilty.
    assert certificate.guilty.startswith("s[U].bind(i.outer, blockIdx.x), at ")


@pytest.mark.search
@pytest.mark.parametrize("statement", _STATEMENTS)
def test_extern_operations_are_certified_whatever_they_call(statement):
    certificate = certify(*between(statement), every_step=True)
    assert certificate.holds, str(certificate)
    assert "s[T].split(i, factor=4)" in certificate.compared


@pytest.mark.search
@pytest.mark.parametrize("statement", _STATEMENTS)
@pytest.mark.parametrize("bug", ["lost tail guard", "split rounds down"])
def test_the_guilty_step_before_an_extern_operation_is_named(statement, bug):
    with switched_on(seeded(bug)):
        certificate = certify(*between(statement))
    assert certificate.guilty.startswith("s[T].split(i, factor=4), at ")


def test_a_pass_that_moves_a_call_is_guilty(monkeypatch):
    """Only a function that reads all it is given, and writes all it may, tells."""
    function = versions_module.steps_for

    def dropped(func):
        visit = memoised(
            lambda recurse, node: (
                block([]) if isinstance(node, CALLS) else map_children(node, recurse)
            )
        )
        return func.with_body(visit(func.body))

    def with_another(kind):
        return (*function(kind), PipelineStep(dropped, "host", "to be found"))

    monkeypatch.setattr(versions_module, "steps_for", with_another)
    certificate = certify(*between(_unknown))
    assert certificate.guilty == "pass dropped"
    assert "of E is read, never written" in str(certificate)


def test_what_leaves_elements_unwritten_has_no_meaning():
    def first(ins, outs):
        ib = rc.ir_builder.create()
        ib.emit(outs[0].vstore(0, ins[0][0]))
        return ib.get()

    with pytest.raises(EvaluateError, match="E leaves element 1 of E unwritten"):
        certify(*between(first))


def test_calls_with_the_address_of_an_element_are_refused():
    def part(ins, outs):
        return rc.call_extern("int32", "f", outs[0].access_ptr("w", offset=1), *ins)

    with pytest.raises(Unsupported, match="f is given the address of an element") as caught:
        certify(*between(part))
    assert "give it the whole tensor" in caught.value.remedy


def test_large_scans_have_no_stand_in():
    t = 300_000
    x, state = rc.placeholder((t,), name="X"), rc.placeholder((t,), name="state")
    init = rc.compute((1,), lambda _: x[0], name="init")
    rows = rc.scan(init, rc.compute((t,), lambda t: state[t - 1] + x[t], name="U"), state)
    with pytest.raises(Unsupported, match="scan computes 300001 values, too many to interpret"):
        certify(rc.create_schedule(rows), [x, rows])


_ADD = "func add(A: f32[n], B: f32[n] out) { for i in range(n) parallel { B[i] = A[i] + 1f32 } }"


def test_passes_over_loop_ir_are_certified():
    certificate = certify_function(parse_func(_ADD), every_step=True)
    assert certificate.holds, str(certificate)
    assert "outline_parallel" in certificate.compared
    bug = seeded("last iterations of a parallel loop lost")
    with switched_on(bug):
        certificate = certify_function(parse_func(_ADD))
    assert certificate.guilty == "pass outline_parallel"
    assert certificate.difference.index == (2,)
    assert "nothing writes it" in str(certificate)
    assert re.search(r"missing: \S+ with n = 5, i = 2", str(certificate))


_CALLING = "func f(A: f32[4], B: f32[4] out) { packed nowhere(read(A), update(B), 2) }"


def test_loop_ir_that_calls_functions_is_certified():
    certificate = certify_function(parse_func(_CALLING), every_step=True)
    assert certificate.holds, str(certificate)


def test_loop_ir_that_cannot_be_certified():
    broken = parse_func("func f(A: f32[n] out) { for i in range(n) { A[n + i64(A[i])] = 1f32 } }")
    with pytest.raises(
        UserError, match="f cannot be certified: it breaks a rule of the interpreter"
    ):
        certify_function(broken)
    calling = parse_func("func f(A: f32[4] out) { extern i32 g(write(A[1])) }")
    with pytest.raises(Unsupported, match="g is given the address of an element"):
        certify_function(calling)
    endless = parse_func("func f(A: f32[4] out) { for i in range(999999) { A[0] = 1f32 } }")
    with pytest.raises(Unsupported, match="f computes 999999 values, too many to interpret"):
        certify_function(endless)


def test_what_is_no_schedule_is_refused():
    with pytest.raises(UserError, match="cannot be certified"):
        certify(3, [])


def test_a_schedule_without_arguments_is_refused() -> None:
    a = rc.placeholder((4,), name="A")
    c = rc.compute((4,), lambda i: a[i] + 1.0, name="C")
    with pytest.raises(UserError) as caught:
        rc.certify(rc.create_schedule(c.op))
    assert str(caught.value) == (
        "a schedule is certified without its arguments\n"
        "  where: the schedule has the stages A, C\n"
        "  why: the arguments and their order are those of the function that is lowered\n"
        "  what to do: pass the tensors that build() would take: certify(s, [A, B, C])"
    )


def test_notes_name_unread_arguments_and_outputs_left_out():
    a, unread = (rc.placeholder((8,), name=name) for name in "AX")
    b = rc.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = rc.compute((8,), lambda i: b[i] * 2.0, name="C")
    s = rc.create_schedule([b.op, c.op])
    certificate = rc.certify(s, [a, unread, c])
    assert certificate.holds
    assert certificate.notes[0] == "nothing reads argument X"
    assert certificate.notes[1].startswith("output B is not an argument")
    assert certificate.report().endswith("no caller sees it")
    # The stand-in keeps the argument, too.
    assert rc.certify(s, [a, unread, c], max_points=4).holds


def test_computations_on_vectors_are_certified():
    n = rc.var("n")
    a = rc.placeholder((n, 8), "float32x4", name="A")
    k = rc.reduce_axis((0, 8), name="k")
    c = rc.compute((n,), lambda i: rc.sum(a[i, k] * 0.5, axis=k), name="C")
    s = rc.create_schedule(c)
    s[c].split(k, factor=3)
    assert certify(s, [a, c]).holds
