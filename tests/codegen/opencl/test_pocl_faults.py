"""Right kernels that PoCL runs wrongly or crashes on, and the text by which it runs them well.

See Note [Loops that PoCL does not leave] in `refcomp/codegen/c_family/statements.py`. Each kernel
runs in a process of its own, as nothing else ends what hangs in there.
"""

import os
import subprocess
import sys

import pytest

import refcomp
from tests.properties.intel_opencl import alone

_PLAIN = """
kernel __attribute__((reqd_work_group_size(3, 1, 1)))
void f(global int *restrict B, const long n, global const int *restrict A) {
  const long t = get_local_id(0);
  for (long i = 0; i < 2; ++i) {
    for (long k = 0; k < n; ++k) barrier(CLK_LOCAL_MEM_FENCE);
    for (long j = 0; j < n; ++j)
      if (t < 2) B[t] += j;
  }
}
"""
_TILED = """
kernel __attribute__((reqd_work_group_size(2, 1, 1)))
void f(global int *restrict B, const long n, global const int *restrict A) {
  local int S[3];
  const long g = get_group_id(0);
  const long t = get_local_id(0);
  for (long i = 0; i < 2; ++i) {
    for (long k = 0; k < n; ++k) {
      int own[1];
      for (long j = 0; j < 2; ++j)
        if (3 * g + t + i + 2 * j < 12 && t + 2 * j < 3)
          S[t + 2 * j] = A[(3 * g + t + i + 2 * j) * n + k];
      barrier(CLK_LOCAL_MEM_FENCE);
      if (3 * g + 2 * t + i < 12) own[0] = S[2 * t];
      barrier(CLK_LOCAL_MEM_FENCE);
      if (2 * t + i < 3) B[(3 * g + 2 * t + i) * n + k] = own[0];
    }
  }
}
"""
_RIGHT = {_PLAIN: "[6, 6, 0, 0, 0, 0, 0, 0, 0]", _TILED: "[0, 1, 2, 3, 4, 5, 6, 7, 8]"}


def _keep(text: str, *loops: str) -> str:
    """Return `text` with the variables of these loops kept in memory."""
    for var in loops:
        text = text.replace(f"(long {var} ", f"(volatile long {var} ")
    return text


# The loops to keep, by which PoCL fails, and those by which it runs the kernel well.
_WRONG = [(_PLAIN, ""), (_PLAIN, "i"), (_TILED, "k")]
_WELL = [(_PLAIN, "ik"), (_TILED, "ik")]
_RUN = """
import sys
import numpy as np
import pyopencl as cl

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
sums, source = np.zeros(9, np.int32), np.arange(12, dtype=np.int32)
memory = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=sums)
other = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=source)
kernel = cl.Program(context, sys.argv[1]).build().f
print(context.devices[0].platform.version, flush=True)
key = cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE
size = kernel.get_work_group_info(key, context.devices[0])
kernel(queue, size, size, memory, np.int64(3), other)
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
@pytest.mark.parametrize(("text", "kept"), _WELL)
def test_kernel_with_its_loops_kept_ends_well_on_pocl(text: str, kept: str) -> None:
    assert _run(_keep(text, *kept))[1] == _RIGHT[text]


@pytest.mark.pocl
@pytest.mark.parametrize(("text", "kept"), _WRONG)
def test_pocl_still_needs_both_loops_to_be_kept(text: str, kept: str, record_property) -> None:
    """When this fails for each version that is in use, `loop_volatile` is needed no longer."""
    version, result = _run(_keep(text, *kept), limit_s=25)  # it takes 2 where it ends
    if any(faulty in version.lower() for faulty in _FAULTY):
        assert result != _RIGHT[text], f"{version} runs it well now: remove the workaround"
    else:
        record_property("summary", f"{version} on the kernel of test_pocl_faults: {result!r}")


@pytest.mark.oclgrind
@pytest.mark.parametrize(("text", "kept"), _WRONG + _WELL)
def test_oclgrind_finds_the_kernels_right(text: str, kept: str) -> None:
    assert _run(_keep(text, *kept), "oclgrind", "--data-races")[1] == _RIGHT[text]


@pytest.mark.intel
@pytest.mark.parametrize(("text", "kept"), _WRONG + _WELL)
def test_intel_s_runtime_finds_the_kernels_right(text: str, kept: str, tmp_path) -> None:
    assert _run(_keep(text, *kept), **alone(tmp_path))[1] == _RIGHT[text]


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
