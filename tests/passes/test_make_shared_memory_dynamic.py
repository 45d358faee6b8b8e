"""Shared buffers become dynamic where a kernel needs more static memory than can be declared."""

import copy
import re

import numpy as np
import pytest

from refcomp.codegen.cuda.module import print_cuda
from refcomp.driver.steps import CUDA_STEPS, DYNAMIC_SHARED_MEMORY, run_step
from refcomp.ir.func import Program
from refcomp.ir.parser import parse_program
from refcomp.ir.printer import print_program
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import Allocate, Block, For, LaunchKernel, LetStmt
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret_program
from refcomp.passes import make_shared_memory_dynamic as module
from refcomp.passes.make_shared_memory_dynamic import (
    MAX_STATIC_BYTES,
    make_shared_memory_dynamic,
)
from refcomp.runtime.cuda.kernels import USUAL_SHARED_BYTES
from tests.passes.docstring_examples import docstring_example


def program_with(*buffers: str, launch: str = "", host: str = "{}") -> Program:
    """A program whose kernel allocates `buffers`, as `S: f32[8]`, and adds 1 to A by the first."""
    opened = "".join(f"alloc {buffer} shared {{ " for buffer in buffers)
    first = buffers[0].partition(":")[0]
    call = f"launch k (A, n) grid (n, 1, 1) block (4, 1, 1) {launch}"
    return parse_program(f"""
    func f(A: f32[n, 4] out) {{ {host.format(call)} }}
    func k(A: f32[n, 4] out, n: i64) {{
      for b in range(n) blockIdx.x {{ for t in range(4) threadIdx.x {{
        {opened}
          {first}@[t] = A@[b * 4 + t]
          barrier
          A@[b * 4 + t] = {first}@[3 - t] + 1.0f32
        {"}" * len(buffers)}
      }} }}
    }}
    """)


def checked(program: Program) -> Program:
    result = make_shared_memory_dynamic(program)
    verify(result.host, "launch")
    for kernel in result.kernels:
        verify(kernel, "flat")
    assert print_program(parse_program(print_program(result))) == print_program(result)
    return result


def shapes(program: Program) -> dict[str, str]:
    """The extents of the shared buffers of the first kernel."""
    allocations = (n for n in walk(program.kernels[0].body) if isinstance(n, Allocate))
    return {n.buffer.name: ", ".join(map(str, n.buffer.shape)) for n in allocations}


def launches(program: Program) -> list[LaunchKernel]:
    return [node for node in walk(program.host.body) if isinstance(node, LaunchKernel)]


def test_docstring():
    before = parse_program(docstring_example(module, "Before"))
    assert print_program(before) == docstring_example(module, "Before")
    after = checked(before)
    assert print_program(after) == docstring_example(module, "After")
    assert make_shared_memory_dynamic(after) is after


def test_the_runtime_has_the_same_limit():
    assert MAX_STATIC_BYTES == USUAL_SHARED_BYTES


@pytest.mark.parametrize("buffers", [["S: f32[12288]"], ["S: f32[64]", "T: i8[49152 - 256]"]])
def test_up_to_48_kib_nothing_changes(buffers):
    program = program_with(*buffers)
    assert make_shared_memory_dynamic(program) is program


def test_the_largest_buffers_move_first():
    program = checked(program_with("S: f32[4]", "T: f64[2048]", "U: f32[16384]", "V: i8[16384]"))
    assert shapes(program) == {"S": "4", "T": "2048", "U": "U_elements", "V": "16384"}
    program = checked(program_with("S: f32[4]", "T: f32[8192]", "U: f32[16384]", "V: i8[16385]"))
    moved = {"S": "4", "T": "T_elements", "U": "U_elements", "V": "16385"}
    assert shapes(program) == moved
    (launch,) = launches(program)
    # The order of the sizes is that of the allocations, not that of the choice.
    assert [size.value for size in launch.shared_bytes] == [32768, 65536]
    assert [argument.name for argument in launch.arguments] == [
        "A",
        "n",
        "U_elements",
        "T_elements",
    ]


def test_buffers_that_were_dynamic_keep_their_sizes():
    program = checked(
        program_with(
            "S: f32[n]", "T: f32[20000]", "U: i8[n * 2]", launch="shared_bytes (n * 4, n * 2)"
        )
    )
    (launch,) = launches(program)
    assert [str(size) for size in launch.shared_bytes] == ["n * 4", "80000", "n * 2"]


def test_every_launch_of_the_kernel_changes():
    host = "{0} for i in range(3) {{ if (i > 1) {{ {0} }} }}"
    program = checked(program_with("S: f32[20000]", host=host))
    lets = [node for node in walk(program.host.body) if isinstance(node, LetStmt)]
    assert [len(launch.arguments) for launch in launches(program)] == [3, 3] and len(lets) == 2


def test_new_names_differ_from_all_others():
    text = print_program(program_with("S: f32[20000]"))
    program = checked(parse_program(re.sub(r"\bn\b", "S_elements", text)))
    assert program.kernels[0].params[-1].name == "S_elements_1"


def test_an_allocation_at_several_places_stays():
    program = program_with("S: f32[16384]")
    kernel = program.kernels[0]
    loop = kernel.body.body
    assert isinstance(loop, For)
    twice = with_fields(loop, body=Block((loop.body, loop.body)))
    kernel = kernel.with_body(with_fields(kernel.body, body=twice))
    program = Program(program.host, (kernel,))
    assert make_shared_memory_dynamic(program) is program


@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_the_interpreter_computes_the_same(dtype):
    program = program_with("S: f32[4]", f"T: {dtype}[70000]", "U: f32[13000]")
    a = np.arange(20, dtype=np.float32).reshape(5, 4)
    actual, expected = copy.deepcopy(a), copy.deepcopy(a)
    interpret_program(program, [expected])
    interpret_program(checked(program), [actual])
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(actual, a[:, ::-1] + 1)


def test_the_step_of_the_cuda_pipeline_makes_what_nvcc_accepts():
    assert DYNAMIC_SHARED_MEMORY in CUDA_STEPS
    program = program_with("S: f32[20000]")
    made = program
    for step in CUDA_STEPS[CUDA_STEPS.index(DYNAMIC_SHARED_MEMORY) :]:
        made = run_step(step, made)
    text = print_cuda(made.kernels).text
    assert "extern __shared__" in text and "__shared__ float" not in text
    assert run_step(DYNAMIC_SHARED_MEMORY, made) is made
