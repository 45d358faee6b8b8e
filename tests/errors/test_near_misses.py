"""Each name that a user can misspell is answered by the name that was probably meant."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

import refcomp as rc
from refcomp.frontend.onnx.attributes import read_attributes
from refcomp.graph import find_operator
from refcomp.schedule.schedule import replay
from refcomp.schedule.step import AxisName, Step

ROOT = Path(__file__).parents[2]


def scheduled() -> SimpleNamespace:
    a = rc.placeholder((4,), name="A")
    b = rc.compute((4,), lambda i: a[i] + 1, name="Cube")
    s = rc.create_schedule(b)
    return SimpleNamespace(a=a, b=b, s=s, stage=s[b], axis=b.op.axis[0])


def options(**given: bool) -> None:
    with rc.build_options(**given):
        pass


def text(statement: str) -> Callable[[], object]:
    return lambda: rc.parse_func(f"func f(Input: f32[8] out) {{ {statement} }}")


CASES = {
    "target": (lambda: rc.as_target("llmv -mcpu=native"), "llvm? use one of\n"),
    "target attribute": (lambda: rc.as_target("llvm -mpcu=native"), "mcpu? options: "),
    "build option": (lambda: options(contarct=True), "contract? options: "),
    "dtype": (lambda: rc.as_dtype("flaot32"), "float32 or f32? use one of "),
    "dtype of te": (lambda: rc.placeholder((4,), "unit8"), "uint8 or int8? use one of "),
    "thread axis": (lambda: rc.thread_axis("threadIdx.X"), "threadIdx.x? use one of "),
    "scope": (lambda: scheduled().stage.set_scope("shard"), "shared? use one of global, "),
    "scope of a copy": (
        lambda: (it := scheduled()).s.cache_read(it.a, "Local", [it.b]),
        "local? use one of global, ",
    ),
    "scope of a buffer": (lambda: rc.decl_buffer((4,), scope="golbal"), "global? use one of "),
    "pragma": (
        lambda: (it := scheduled()).stage.pragma(it.axis, "auto_unrol_max_step", 4),
        "auto_unroll_max_step? use one of ",
    ),
    "tensor": (lambda: scheduled().s["Cub"], "Cube? pass the tensor itself"),
    "axis": (lambda: scheduled().stage.split("I", 2), "i? pass the loop itself"),
    "stage of a step": (
        lambda: replay([scheduled().b], [Step("Cub", "unroll", (AxisName("i"),), (), "")]),
        "Cube? replay steps on ",
    ),
    "axis of a step": (
        lambda: replay([scheduled().b], [Step("Cube", "unroll", (AxisName("I"),), (), "")]),
        "i? replay steps on ",
    ),
    "device": (lambda: rc.device("opnecl"), "opencl? use one of: "),
    "context": (lambda: rc.context("lvm"), "llvm? use one of: "),
    "intrinsic": (lambda: rc.call_pure_intrin("float32", "sqr", 1.0), "sqrt"),
    "function": (lambda: rc.get_global_func("near_mises"), "near_misses? register it: "),
    "operator": (lambda: find_operator("conv2"), "conv2d"),
    "word of loop IR": (text("for i in range(8) paralel { }"), "parallel?"),
    "dtype of loop IR": (text("let x: i46 = 1 in { }"), "i64"),
    "atomic of loop IR": (text("atomic mim Input[0] with 1.0f32"), "min?"),
    "buffer of loop IR": (text("Inptu[0] = 1.0f32"), "Input?"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_name_that_was_meant_is_offered(case: str) -> None:
    rc.register_func("near_misses", len, override=True)
    call, expected = CASES[case]
    with pytest.raises(rc.UserError) as caught:
        call()
    assert (caught.value.remedy or "").startswith(f"did you mean {expected}"), caught.value


def test_the_name_of_an_onnx_attribute_is_offered() -> None:
    node = onnx.helper.make_node("Softmax", ["x"], ["y"], axes=1)
    with pytest.raises(rc.Unsupported) as caught:
        read_attributes(node, onnx.defs.get_schema("Softmax", 13), np.asarray, np.asarray)
    assert caught.value.what == ("its attribute 'axes' is unknown to refcomp; did you mean axis?")


def test_a_name_that_is_right_is_not_offered_again() -> None:
    with pytest.raises(rc.UserError) as caught:
        scheduled().s["Cube"]
    assert caught.value.remedy == "pass the tensor itself, or its operation"


@pytest.mark.tools
@pytest.mark.parametrize(
    ("module", "wrong", "right"),
    [
        ("refcomp", "placehodler", "placeholder"),
        ("refcomp.te", "create_schedul", "create_schedule"),
        ("refcomp.graph", "compile_grph", "compile_graph"),
    ],
)
def test_python_offers_the_names_of_modules(module: str, wrong: str, right: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}\n{module}.{wrong}"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert done.stderr.endswith(f"has no attribute {wrong!r}. Did you mean: {right!r}?\n")
