"""Right kernels that PoCL runs wrongly, and the text by which it runs them well.

See Note [Loops that PoCL does not leave] in `refcomp/codegen/c_statements.py`. Each kernel runs in
a process of its own, as nothing else ends what hangs in there.
"""

import os
import subprocess
import sys

import pytest

import refcomp
from tests.properties.intel_opencl import alone

_PLAIN = """
kernel __attribute__((reqd_work_group_size(3, 1, 1)))
void f(global int *restrict B, const long n) {
  const long t = get_local_id(0);
  for (long i = 0; i < 2; ++i) {
    for (long k = 0; k < n; ++k) barrier(CLK_LOCAL_MEM_FENCE);
    for (long j = 0; j < n; ++j)
      if (t < 2) B[t] += j;
  }
}
"""
_KEPT = _PLAIN.replace("(long k", "(volatile long k")
_CRASHES = _PLAIN.replace("(long i", "(volatile long i")
_RIGHT = "[6, 6, 0]"
_RUN = """
import sys
import numpy as np
import pyopencl as cl

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
sums = np.zeros(3, np.int32)
memory = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=sums)
kernel = cl.Program(context, sys.argv[1]).build().f
print(context.devices[0].platform.version, flush=True)
kernel(queue, (3,), (3,), memory, np.int64(3))
queue.finish()
cl.enqueue_copy(queue, sums, memory)
print(sums.tolist())
"""
# The versions of PoCL known to fail.
_FAULTY = ("pocl 3.1",)


def _run(text: str, *command: str, limit_s: float = 300, **variables: str) -> tuple[str, str]:
    """The platform's version, and what the kernel computed, "" where it crashed or did not end."""
    process = subprocess.Popen(
        [*command, sys.executable, "-c", _RUN, text],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        lines = process.communicate(timeout=limit_s)[0].splitlines()
    except subprocess.TimeoutExpired:
        process.kill()
        lines = process.communicate()[0].splitlines()
    return lines[0], "".join(lines[1:])


@pytest.mark.pocl
def test_kernel_with_its_loop_kept_ends_well_on_pocl() -> None:
    assert _run(_KEPT)[1] == _RIGHT


@pytest.mark.pocl
@pytest.mark.parametrize("text", [_PLAIN, _CRASHES])
def test_pocl_still_needs_the_loop_to_be_kept(text: str, record_property) -> None:
    """When this fails for each version that is in use, `loop_kept` is needed no longer."""
    version, result = _run(text, limit_s=60)
    if any(faulty in version.lower() for faulty in _FAULTY):
        assert result != _RIGHT, f"{version} runs it well now: remove the workaround"
    else:
        record_property("summary", f"{version} on the kernel of test_pocl_faults: {result!r}")


@pytest.mark.oclgrind
@pytest.mark.parametrize("text", [_PLAIN, _KEPT])
def test_oclgrind_finds_the_kernels_right(text: str) -> None:
    assert _run(text, "oclgrind", "--data-races")[1] == _RIGHT


@pytest.mark.intel
@pytest.mark.parametrize("text", [_PLAIN, _KEPT, _CRASHES])
def test_intel_s_runtime_finds_the_kernels_right(text: str, tmp_path) -> None:
    assert _run(text, **alone(tmp_path))[1] == _RIGHT


_MERGED = """
func merged(B: i32[3] out, n: i64) {
  for t in range(3) threadIdx.x {
    alloc S: i32[3] shared {
      B[t] = 0i32
      for i in range(2) {
        for k in range(n) {
          S[t] = i32(k)
          B[t] = B[t] + S[2 - t]
        }
        for j in range(n) {
          if (t < 2) { B[t] = B[t] + i32(j) }
        }
      }
    }
  }
}
"""
_BUILD = """
import sys
import numpy as np
import refcomp

sums = refcomp.array(np.zeros(3, np.int32), refcomp.opencl())
refcomp.build(refcomp.parse_func(sys.argv[1]), target="opencl")(sums, 3)
print(sums.asnumpy().tolist())
"""


@pytest.mark.pocl
def test_what_is_printed_of_such_loops_ends_well_on_pocl() -> None:
    wanted = refcomp.array([7, 7, 7], refcomp.cpu(), dtype="int32")
    refcomp.build(refcomp.parse_func(_MERGED), target="interp")(wanted, 3)
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, _MERGED],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.strip() == str(wanted.asnumpy().tolist()) == "[12, 12, 6]"
