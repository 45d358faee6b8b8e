import numpy as np
import pytest

import refcomp as rc
from refcomp import target
from refcomp.graph import GraphBuilder


def test_classic_names_are_those_of_refcomp():
    assert target.create is rc.as_target
    assert target.Target is rc.Target
    assert target.current_target is rc.current_target
    assert target.generic_func is rc.generic_func
    assert all(hasattr(target, name) for name in target.__all__)


def increment():
    A = rc.placeholder((4,), name="A")
    B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
    return rc.create_schedule(B), [A, B]


def test_builds_compile_for_the_current_target():
    s, args = increment()
    with target.create("interp"):
        module = rc.build(s, args)
        functions = rc.build_functions([rc.lower(s, args)])
    assert (module.target, functions.target) == ("interp", "interp")
    b = np.zeros(4, np.float32)
    module(np.ones(4, np.float32), b)
    assert b.tolist() == [2, 2, 2, 2]


def test_an_argument_comes_before_the_current_target():
    with target.create("opencl"):
        assert rc.build(*increment(), target="interp").target == "interp"


@pytest.mark.llvm
def test_without_a_target_the_host_is_meant():
    assert rc.build(*increment()).target == "llvm"


def test_graphs_and_schedules_of_operators_follow_the_current_target():
    g = GraphBuilder("net")
    net = g.finish([g.node("relu", [g.input("x", "float32", (4,))])])
    A = rc.placeholder((64,), name="A")
    with target.create("interp"):
        assert rc.compile_graph(net).target.kind == "interp"
    with target.create("opencl"):
        s = rc.topi.schedule_injective(rc.topi.relu(A))
    assert "bind" in [step.primitive for step in s.steps]
