import gc

import numpy as np
import pytest

import refcomp
from benchmarks.lowering.workload import chain_of_stages, compile_to_text
from refcomp.driver import pipeline
from refcomp.driver import steps as steps_module
from refcomp.driver.backends import as_target, backends
from refcomp.driver.pipeline import (
    all_passes,
    find_pass,
    passes_for,
    run_device_passes,
    run_passes,
    run_pipeline,
    steps_for,
)
from refcomp.driver.steps import PipelineStep, Scope
from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.foundation.target import limits_of
from refcomp.ir.expr import Expr
from refcomp.ir.printer import print_program
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Barrier, For, IfThenElse, LaunchKernel, ParallelRegion
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret_program
from tests.quotations import quoted

_LICENCES = {"contract": True, "narrow_indices": True, "check_bounds": True}


def _tiled(n):
    a, b = (refcomp.placeholder((n, 8), name=name) for name in "AB")
    c = refcomp.compute((n, 8), lambda i, j: a[i, j] + b[i, j], name="C")
    s = refcomp.create_schedule(c.op)
    i_outer, i_inner = s[c].split(c.op.axis[0], factor=4)
    s[c].parallel(i_outer)
    s[c].unroll(i_inner)
    s[c].vectorize(c.op.axis[1])
    return refcomp.lower(s, [a, b, c], "tiled")


def _count(func, cls):
    return sum(isinstance(node, cls) for node in walk(func))


def test_the_host_pipeline_leaves_only_what_the_printer_knows(golden):
    func = run_passes(_tiled(16), "llvm")
    assert {node.kind for node in walk(func) if isinstance(node, For)} == {"serial"}
    assert _count(func, ParallelRegion) == 1
    golden("pipeline/tiled_host.txt", refcomp.print_func(func))


@pytest.mark.parametrize(("extent", "guards"), [(16, 0), (15, 1)])  # only the last copy's
def test_full_tiles_carry_no_guard_to_the_end(extent, guards):
    assert _count(run_passes(_tiled(extent), "llvm"), IfThenElse) == guards


def test_every_step_says_why_it_stands_where_it_stands():
    with refcomp.build_options(**_LICENCES):
        steps = [step for backend in backends() for step in steps_for(backend.name)]
    assert all(step.reason and step.level for step in steps)
    of_programs = (Scope.SPLIT, Scope.DEVICE_LIMITS, Scope.LAUNCHES)
    special = {step.name for step in steps if step.scope in of_programs}
    assert special == {"split_host_device", "check_device_limits", "make_shared_memory_dynamic"}
    assert set(all_passes()) == {step.name for step in steps} - special


def test_some_steps_need_a_licence():
    with refcomp.build_options(**_LICENCES):
        licensed = {step.name for step in passes_for("llvm")}
    assert licensed - {step.name for step in passes_for("llvm")} == {
        "check_accesses",
        "fuse_multiply_add",
        "narrow_index_types",
    }


def test_passes_are_found_by_name():
    assert find_pass("flatten_storage").__name__ == "flatten_storage"
    with pytest.raises(UserError, match=r"'flatten' is not a pass(.|\n)*flatten_storage"):
        find_pass("flatten")
    with pytest.raises(UserError, match="did you mean vectorize_loops[^?]*[?] passes: "):
        find_pass("vectorise_loops")
    for name in ("split_host_device", "check_device_limits"):
        with pytest.raises(UserError, match=f"the step {name} cannot be run alone"):
            find_pass(name)


def _drop_loop(func):
    return func.with_body(func.body.body)


def _with_broken_step(monkeypatch, after):
    """Let a pass that drops the outermost loop follow the step named `after`."""
    right = pipeline.steps_for

    def wrong(kind):
        steps = list(right(kind))
        place = next(k for k, step in enumerate(steps) if step.name == after)
        broken = PipelineStep(_drop_loop, steps[place].level, "it is wrong", steps[place].scope)
        return (*steps[: place + 1], broken, *steps[place + 1 :])

    monkeypatch.setattr(pipeline, "steps_for", wrong)


_BROKEN = [
    ("llvm", _tiled, "partition_loops", "level host"),
    ("llvm", _tiled, "introduce_lets", "level host"),
    ("opencl", lambda n: _shared_rows(n), "lower_intrinsics", "level device"),
]


@pytest.mark.parametrize(("kind", "make", "after", "level"), _BROKEN)
def test_a_step_that_breaks_a_function_is_caught_and_named(kind, make, after, level, monkeypatch):
    _with_broken_step(monkeypatch, after)
    with (
        refcomp.build_options(verify_steps=True),
        pytest.raises(CompilerBug, match="after _drop_loop is not legal at level"),
    ):
        run_pipeline(make(16), kind)
    with (
        refcomp.build_options(verify_steps=False),
        pytest.raises(CompilerBug, match=f"after all steps is not legal at {level}") as caught,
    ):
        run_pipeline(make(16), kind)
    assert "set REFCOMP_VERIFY_STEPS to 1" in caught.value.remedy


def test_what_is_lowered_is_verified_with_each_step():
    broken = _drop_loop(_tiled(16))
    with (
        refcomp.build_options(verify_steps=True),
        pytest.raises(CompilerBug, match="after lowering is not legal at level nested"),
    ):
        run_passes(broken, "llvm")
    with (
        refcomp.build_options(verify_steps=False),
        pytest.raises(CompilerBug, match="after all steps is not legal at level host"),
    ):
        run_passes(broken, "llvm")


@pytest.mark.parametrize(("asked", "count"), [(False, 1), (True, 7)])
def test_only_the_last_result_is_verified_unless_all_are_asked_for(asked, count, monkeypatch):
    seen = []
    monkeypatch.setattr(steps_module, "verify", lambda *args, **words: seen.append(words["after"]))
    with refcomp.build_options(verify_steps=asked):
        run_passes(_tiled(16), "llvm")
    assert len(seen) == count


def test_origins_survive_the_passes_that_keep_statements():
    func = run_passes(_tiled(15), "llvm")
    loops = [node for node in walk(func) if isinstance(node, For)]
    assert loops and all(loop.origin is not None and loop.origin.line for loop in loops)


# Devices.


def _shared_rows(n, dtype="float32"):
    """Each group of eight threads turns rows of eight around by way of shared memory."""
    a = refcomp.placeholder((n, 8), name="A", dtype=dtype)
    b = refcomp.compute((n, 8), lambda i, j: a[i, 7 - j] + a[i, j], name="B")
    s = refcomp.create_schedule(b.op)
    copy = s.cache_read(a, "shared", [b])
    i, j = b.op.axis
    outer, inner = s[b].split(j, factor=4)
    s[b].bind(i, refcomp.thread_axis("blockIdx.x"))
    s[b].bind(outer, refcomp.thread_axis("threadIdx.x"))
    s[b].vectorize(inner)
    s[copy].compute_at(s[b], i)
    s[copy].bind(s[copy].split(copy.op.axis[1], factor=4)[0], refcomp.thread_axis("threadIdx.x"))
    return refcomp.lower(s, [a, b], "rows")


def _limits(kind):
    return limits_of(as_target(kind))


@pytest.mark.parametrize("kind", ["opencl", "rocm"])
def test_the_device_pipeline(kind, golden):
    program = run_device_passes(_shared_rows(refcomp.var("n")), kind, _limits(kind))
    verify(program.host, "launch")
    (kernel,) = program.kernels
    verify(kernel, "device")
    assert _count(kernel, Barrier) == 1 and _count(program.host, LaunchKernel) == 1
    golden("pipeline/rows_device.txt", print_program(program))
    a, b = np.arange(24, dtype=np.float32).reshape(3, 8), np.zeros((3, 8), np.float32)
    interpret_program(program, [a, b])
    np.testing.assert_array_equal(b, a[:, ::-1] + a)


def test_no_mask_of_a_vectorized_loop_stands_around_a_launch():
    a = refcomp.placeholder((7, 1), name="A")
    c = refcomp.compute((7, 1), lambda i, j: a[i, j] + 1, name="C")
    s = refcomp.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].vectorize(inner)
    s[c].bind(c.op.axis[1], refcomp.thread_axis("blockIdx.x"))
    func = refcomp.lower(s, [a, c], "case")
    program = run_device_passes(func, "rocm", limits_of(as_target("rocm")))
    assert not any(isinstance(n, Expr) and n.dtype.lanes > 1 for n in walk(program.host.body))
    values, out = np.arange(7, dtype=np.float32).reshape(7, 1), np.zeros((7, 1), np.float32)
    interpret_program(program, [values, out])
    assert out[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_vectors_are_cut_for_opencl_alone():
    def lanes(kind):
        a = refcomp.placeholder((4, 6), name="A")
        b = refcomp.compute((4, 6), lambda i, j: a[i, j] * 2, name="B")
        s = refcomp.create_schedule(b.op)
        s[b].bind(b.op.axis[0], refcomp.thread_axis("threadIdx.x"))
        s[b].vectorize(b.op.axis[1])
        program = run_device_passes(refcomp.lower(s, [a, b]), kind, _limits(kind))
        nodes = (node for kernel in program.kernels for node in walk(kernel))
        return {node.dtype.lanes for node in nodes if isinstance(node, Expr)}

    assert lanes("opencl") == {1, 2, 4}
    assert lanes("rocm") == {1, 6}


@pytest.mark.parametrize("kind", ["opencl", "rocm"])
def test_a_bfloat16_program_has_integers_only_on_its_host(kind):
    program = run_device_passes(_shared_rows(4, "bfloat16"), kind, _limits(kind))
    assert "bf16" not in print_program(program) and "f32" not in refcomp.print_func(program.host)


def test_each_step_of_a_program_is_dumped(tmp_path, monkeypatch):
    monkeypatch.setenv("REFCOMP_DUMP", str(tmp_path))
    run_device_passes(_shared_rows(4), "opencl", _limits("opencl"))
    names = [path.stem.split("_", 1)[1] for path in sorted(tmp_path.iterdir())]
    assert names.index("insert_barriers") < names.index("split_host_device")
    assert names.index("split_host_device") < names.index("introduce_lets")


def test_limits_are_checked():
    with pytest.raises(UserError, match="shared memory for a group") as caught:
        run_device_passes(_shared_rows(4), "opencl", limits_of(as_target("opencl -shared_bytes=8")))
    assert quoted(caught.value, "cached here").startswith("copy = s.cache_read(")


def test_bound_loops_are_refused_for_the_host():
    with pytest.raises(UserError, match="axis i of stage B is bound to blockIdx.x, but the host"):
        run_passes(_shared_rows(4), "llvm")


def test_the_interpreter_gets_barriers():
    assert _count(run_passes(_shared_rows(4), "interp"), Barrier) == 1


def test_no_garbage_is_collected_while_a_program_is_compiled():
    schedule, args = chain_of_stages(300)
    collections = []

    def note(phase, _):
        collections.append(phase)

    gc.callbacks.append(note)
    try:
        compile_to_text(schedule, args)
    finally:
        gc.callbacks.remove(note)
    # Each of lowering, passes and printing may be followed by one, with start and stop.
    assert len(collections) <= 2 * 3 * 3
