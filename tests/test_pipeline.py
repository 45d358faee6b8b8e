import pytest

import refcomp
from refcomp.errors import CompilerBug, UserError
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import For, IfThenElse, ParallelRegion
from refcomp.pipeline import PASSES, PipelineStep, find_pass, passes_for, run_pass, run_passes


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
    assert all(step.reason and step.level for step in passes_for("llvm"))
    assert passes_for("interp") == ()
    with refcomp.build_options(contract=True):
        assert set(PASSES) == {step.name for step in passes_for("llvm")}


def test_a_step_that_changes_results_needs_a_licence():
    with refcomp.build_options(contract=True):
        licensed = {step.name for step in passes_for("llvm")}
    assert licensed - {step.name for step in passes_for("llvm")} == {"fuse_multiply_add"}


def test_passes_are_found_by_name():
    assert find_pass("flatten_storage").__name__ == "flatten_storage"
    with pytest.raises(UserError, match=r"there is no pass 'flatten'(.|\n)*flatten_storage"):
        find_pass("flatten")


def test_a_pass_that_breaks_a_function_is_caught_at_once():
    broken = PipelineStep(lambda func: func.with_body(func.body.body), "nested", "it drops a loop")
    with pytest.raises(CompilerBug):
        run_pass(broken, _tiled(16))


def test_origins_survive_the_passes_that_keep_statements():
    func = run_passes(_tiled(15), "llvm")
    loops = [node for node in walk(func) if isinstance(node, For)]
    assert loops and all(loop.origin is not None and loop.origin.line for loop in loops)
