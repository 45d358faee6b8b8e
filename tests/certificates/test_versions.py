"""The programs on the way to a target: each can be run, and each differs from the one before."""

import refcomp as rc
from refcomp.certificates.versions import versions
from refcomp.ir.func import Program
from refcomp.ir.printer import print_func


def _scaled(thread=None, dtype="float32"):
    a = rc.placeholder((6,), dtype, name="A")
    b = rc.compute((6,), lambda i: rc.rsqrt(a[i]) * 2 + 1, name="B")
    s = rc.create_schedule(b)
    if thread is not None:
        s[b].bind(b.op.axis[0], rc.thread_axis(thread))
    return rc.lower(s, [a, b])


def test_each_pass_that_changed_something_is_a_version():
    func = _scaled()
    made = list(versions(func, "llvm"))
    assert made[0].name == "lowering" and made[0].program is func
    assert [v.name for v in made[1:]] == ["flatten_storage", "lower_intrinsics"]
    texts = [print_func(v.made) for v in made]
    assert len(set(texts)) == len(texts)
    assert [v.rounds for v in made] == [False, False, True]
    assert [v.is_exact for v in made] == [True, True, False]


def test_a_licensed_pass_is_a_version_that_rounds():
    with rc.build_options(contract=True):
        made = {v.name: v for v in versions(_scaled(), "llvm")}
    assert made["fuse_multiply_add"].rounds and made["fuse_multiply_add"].is_exact


def test_checked_accesses_are_no_version():
    a = rc.placeholder((rc.var("n"),), name="A")
    func = rc.lower(rc.create_schedule(b := rc.compute((6,), lambda i: a[i] + 1, name="B")), [a, b])
    with rc.build_options(check_bounds=True):
        assert all(not v.made.checks for v in versions(func, "llvm"))


def test_kernels_go_through_passes_of_their_own():
    made = list(versions(_scaled("threadIdx.x", "bfloat16"), "opencl"))
    names = [v.name for v in made]
    assert names.index("split_host_device") < names.index("lower_bfloat16")
    program = made[-1].program
    assert isinstance(program, Program) and len(program.kernels) == 1
    assert not made[names.index("split_host_device")].is_exact


def test_an_early_program_is_run_with_barriers():
    a = rc.placeholder((6,), name="A")
    t = rc.compute((6,), lambda i: a[i] + 1, name="T")
    b = rc.compute((6,), lambda i: t[5 - i], name="B")
    s = rc.create_schedule(b)
    outer, inner = s[b].split(b.op.axis[0], factor=6)
    s[b].bind(outer, rc.thread_axis("blockIdx.x"))
    s[b].bind(inner, rc.thread_axis("threadIdx.x"))
    s[t].set_scope("shared")
    s[t].compute_at(s[b], outer)
    s[t].bind(t.op.axis[0], rc.thread_axis("threadIdx.x"))
    first = next(versions(rc.lower(s, [a, b]), "opencl"))
    assert "barrier" not in print_func(first.made)
    assert "barrier" in print_func(first.program)


def test_what_is_called_has_stand_ins_and_is_compiled_as_it_is():
    a = rc.placeholder((6,), name="A")
    b = rc.extern((6,), [a], lambda ins, outs: rc.call_packed("f", *ins, *outs), name="B")
    for version in versions(rc.lower(rc.create_schedule(b), [a, b]), "llvm"):
        assert "packed f(" in print_func(version.made)
        assert "packed refcomp.oracle.stand_in(" in print_func(version.program)
