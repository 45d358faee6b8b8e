"""`tvm.ir_pass`: programs visit, rewrite and simplify what `tvm.lower` returns."""

import doctest

import numpy as np
import pytest

import refcomp as rc
from refcomp import classic as tvm
from refcomp.classic import ir_passes
from refcomp.foundation.errors import UserError
from refcomp.ir.stmt import LoopKind


def doubled() -> rc.ir.func.PrimFunc:
    A = tvm.placeholder((8, 2), name="A")
    B = tvm.compute((8, 2), lambda i, j: A[i, j] * 2.0, name="B")
    return tvm.lower(tvm.create_schedule(B.op), [A, B], name="f")


def test_the_examples_give_what_they_show() -> None:
    assert doctest.testmod(ir_passes, extraglobs={"rc": rc}).failed == 0


def test_expressions_statements_and_functions_become_simpler() -> None:
    x = tvm.var("x")
    assert str(tvm.ir_pass.Simplify(x * 0 + 1 + 2)) == "3"
    assert tvm.ir_pass.CanonicalSimplify(x + x - x * 2).value == 0
    assert tvm.ir_pass.Simplify(3).value == 3
    once = rc.parse_func("func f(B: f32[4] out) { for i in range(1) { B[i + 0] = 1f32 } }")
    assert "for" not in str(tvm.ir_pass.Simplify(once))
    assert str(tvm.ir_pass.Simplify(once.body)) == "B[0] = 1.0f32"


def test_nodes_are_compared_up_to_names_and_constants_up_to_dtypes() -> None:
    x = tvm.var("x")
    assert tvm.ir_pass.Equal(x + 1, x + 1)
    assert not tvm.ir_pass.Equal(x + 1, x + 2)
    assert tvm.ir_pass.Equal(doubled(), doubled())
    # An index is int64 in refcomp, and a classic program compares it with an int32.
    zero = tvm.ir_pass.Simplify(x - x)
    assert tvm.ir_pass.Equal(zero, 0) and tvm.ir_pass.Equal(0, zero)
    assert tvm.ir_pass.Equal(zero, tvm.const(0, "int32"))
    assert not tvm.ir_pass.Equal(zero, 1)


def test_variables_are_replaced_and_found() -> None:
    x, y = tvm.var("x"), tvm.var("y")
    assert str(tvm.ir_pass.Substitute(x + 1, {x: y * 2})) == "y * 2 + 1"
    assert str(tvm.ir_pass.Substitute(x + 1, {x: 3})) == "3 + 1"
    assert tvm.ir_pass.ExprUseVar(x + 1, x)
    assert not tvm.ir_pass.ExprUseVar(x + 1, y)
    with pytest.raises(UserError, match="'x' is not a variable"):
        tvm.ir_pass.Substitute(x + 1, {"x": 3})


def test_each_node_is_visited_once_and_after_its_children() -> None:
    visited = []
    tvm.ir_pass.PostOrderVisit(doubled(), visited.append)
    loops = [node for node in visited if isinstance(node, tvm.stmt.For)]
    assert [str(loop.loop_var) for loop in loops] == ["j", "i"]
    assert visited[-1] is loops[1]  # the root comes last
    x = tvm.var("x")
    shared, seen = x + 1, []
    tvm.ir_pass.PostOrderVisit(shared * shared, seen.append)
    assert [str(node) for node in seen] == ["x", "1", "x + 1", "(x + 1) * (x + 1)"]


def test_a_custom_pass_changes_a_function_that_is_then_built() -> None:
    def unroll(loop):
        if loop.extent.value == 2:
            fields = (loop.loop_var, loop.min, loop.extent, LoopKind.UNROLLED, loop.body)
            return rc.ir.stmt.For(*fields)
        return None

    func = tvm.ir_pass.IRTransform(doubled(), None, unroll, ["For"])
    assert "for j in range(2) unrolled" in str(func)
    a, b = np.ones((8, 2), "float32"), np.zeros((8, 2), "float32")
    tvm.build(func, target="interp")(a, b)
    assert (b == 2).all()


def test_what_the_first_function_returns_is_kept_as_it_is() -> None:
    x = tvm.var("x")
    seen = []

    def keep_sums(node):
        seen.append(str(node))
        return node if isinstance(node, tvm.expr.Add) else None

    made = tvm.ir_pass.IRTransform((x + 1) * 2, keep_sums, lambda node: None)
    assert str(made) == "(x + 1) * 2"
    assert seen == ["(x + 1) * 2", "x + 1", "2"]


def test_classes_that_do_not_exist_are_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="no node has the class 'IfThenEls'") as info:
        tvm.ir_pass.IRTransform(doubled(), None, print, ["IfThenEls"])
    assert info.value.remedy.startswith("did you mean IfThenElse")


@pytest.mark.parametrize("name", ["Simplify", "PostOrderVisit", "IRTransform"])
def test_other_objects_are_refused(name: str) -> None:
    rest = {"PostOrderVisit": (print,), "IRTransform": (None, None)}.get(name, ())
    with pytest.raises(UserError, match="is neither an expression nor a statement") as info:
        getattr(tvm.ir_pass, name)("text", *rest)
    assert info.value.remedy == "pass what tvm.lower returns, its body, or an expression"


@pytest.mark.parametrize("vmap", [None, [1], {"x": 1}, {tvm.var("x"): "text"}])
def test_replacements_that_are_none_are_refused(vmap: object) -> None:
    with pytest.raises(UserError) as info:
        tvm.ir_pass.Substitute(tvm.var("x") + 1, vmap)
    assert info.value.remedy.startswith("pass ")


def test_a_use_of_something_else_than_a_variable_is_refused() -> None:
    with pytest.raises(UserError, match="'x' is not a variable"):
        tvm.ir_pass.ExprUseVar(tvm.var("x") + 1, "x")


def test_functions_of_nodes_are_checked() -> None:
    with pytest.raises(UserError, match="3 is not a function of a node"):
        tvm.ir_pass.PostOrderVisit(doubled(), 3)
    with pytest.raises(UserError, match="3 is not a function of a node"):
        tvm.ir_pass.IRTransform(doubled(), None, 3)


@pytest.mark.parametrize("made", ["text", 3, tvm.var("x")])
def test_results_that_do_not_fit_are_refused(made: object) -> None:
    for functions in ((lambda loop: made, None), (None, lambda loop: made)):
        with pytest.raises(UserError, match=r"returns .* for a For") as info:
            tvm.ir_pass.IRTransform(doubled(), *functions, ["For"])
        assert "for j in range(2)" in info.value.where
        assert "None to keep the node" in info.value.remedy
