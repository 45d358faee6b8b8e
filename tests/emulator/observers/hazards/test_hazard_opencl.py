"""Groups that work together in one launch, and launches that follow each other: right and wrong.

The kernels are clang's OpenCL C; what orders their accesses are fences and updates of memory.
"""

import subprocess

import numpy as np
import pytest

import refcomp
from refcomp.emulator import EmulatedGpu
from refcomp.emulator.code.findings import RACE, WAIT
from refcomp.emulator.generations.generation import ARCHITECTURES
from tests.emulator.kernels import SMALL, disassembled

pytestmark = [pytest.mark.rocm, pytest.mark.clang]

_RELEASE = '__builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");'
_ACQUIRE = '__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");'
_COUNT = "__scoped_atomic_fetch_add(count, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)"
_TURN = "__scoped_atomic_fetch_add(&done, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP)"
_TELL = "__scoped_atomic_store_n(&count[G], 1, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE)"
_LOOK = "__scoped_atomic_load_n(&count[G - 1], __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE)"
_SOURCE = f"""
#define T __builtin_amdgcn_workitem_id_x()
#define G __builtin_amdgcn_workgroup_id_x()
#define MEET __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \\
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
typedef __global int *ints;
/* Each group adds up its elements; the last one that is done adds up the groups' sums. */
kernel void sum(ints x, ints part, ints count, ints out) {{
  local int t[128], last;
  t[T] = x[G * 128 + T];
  MEET
  if (T == 0) {{
    int s = 0;
    for (int k = 0; k < 128; k++) s += t[k];
    part[G] = s;
    {_RELEASE}
    last = {_COUNT} == 4;
    {_ACQUIRE}
  }}
  MEET
  if (last && T == 100) {{
    int s = 0;
    for (int k = 0; k < 5; k++) s += part[k];
    out[0] = s;
    count[0] = 0;
  }}
}}
/* In each group the wave that is done last adds up, tells the next group, and looks at the one
   before, which is not waited for. */
kernel void relay(ints x, ints part, ints count, ints out) {{
  local int t[128], done;
  int last = 0;
  if (T == 0) done = 0;
  MEET
  t[T] = x[G * 128 + T];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  if (T % 32 == 0) last = {_TURN} == 3;
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  if (last) {{
    int s = 0;
    for (int k = 0; k < 128; k++) s += t[k];
    part[G] = s;
    {_TELL};
    out[G] = G && {_LOOK} ? part[G - 1] : s;
  }}
}}
/* Counts in shared memory first. */
kernel void histogram(ints x, ints part, ints count, ints out) {{
  local int h[16];
  if (T < 16) h[T] = 0;
  MEET
  __atomic_fetch_add(&h[x[G * 128 + T] & 15], 1, __ATOMIC_RELAXED);
  MEET
  if (T < 16) __atomic_fetch_add(&out[T], h[T], __ATOMIC_RELAXED);
}}
/* All groups add to one number, each thread by itself. */
kernel void total(ints x, ints part, ints count, ints out) {{
  __atomic_fetch_add(&out[0], x[G * 128 + T], __ATOMIC_RELAXED);
}}
/* The greatest one, by trying until nobody else was faster. */
kernel void greatest(ints x, ints part, ints count, ints out) {{
  int mine = x[G * 128 + T], old = __atomic_load_n(&out[0], __ATOMIC_RELAXED);
  while (mine > old && !__atomic_compare_exchange_n(&out[0], &old, mine, 0, __ATOMIC_RELAXED,
                                                    __ATOMIC_RELAXED)) {{}}
}}
"""
_GROUPS = 5
_X = np.random.default_rng(5).integers(0, 1000, 128 * _GROUPS).astype(np.int32)
_EXPECTED = {
    "sum": _X.sum(),
    "relay": np.insert(_X.reshape(-1, 128).sum(1)[:-1], 0, _X[:128].sum()),
    "histogram": np.bincount(_X & 15, minlength=16),
    "total": _X.sum(),
    "greatest": _X.max(),
}


def _compile(gpu, source, folder):
    text, result = folder / "kernels.cl", folder / "kernels.hsaco"
    text.write_text(source)
    command = ["/usr/lib/llvm-19/bin/clang", "-x", "cl", "-cl-std=CL2.0", "-O2", "-nogpulib"]
    command += ["-target", "amdgcn-amd-amdhsa", f"-mcpu={gpu}", "-mcode-object-version=5"]
    subprocess.run([*command, str(text), "-o", str(result)], check=True, timeout=120)
    return result.read_bytes()


def _run(code, name, assembly=""):
    gpu = EmulatedGpu(lambda data: assembly or disassembled(data), size=SMALL, hazards=True)
    part, count, out = (np.zeros(16, np.int32) for _ in range(3))
    shape = (_GROUPS, 1, 1), (128, 1, 1)
    report = gpu.run(gpu.load(code), name, *shape, [_X, part, count, out])
    return report.findings, out


@pytest.fixture(scope="module", params=ARCHITECTURES)
def right(request, tmp_path_factory):
    return request.param, _compile(request.param, _SOURCE, tmp_path_factory.mktemp("opencl"))


@pytest.mark.parametrize("name", _EXPECTED)
def test_groups_that_work_together_are_right(name, right):
    findings, out = _run(right[1], name)
    assert not findings, "\n".join(map(str, findings))
    expected = np.atleast_1d(_EXPECTED[name])
    np.testing.assert_array_equal(out[: len(expected)], expected)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (_TURN, "done++", "relay"),
        (_TELL, _TELL.replace("RELEASE", "RELAXED"), "relay"),
        (_TELL, "count[G] = 1", "relay"),
        (_LOOK, _LOOK.replace("ACQUIRE", "RELAXED"), "relay"),
        (_LOOK, "count[G - 1]", "relay"),
        (_RELEASE, "", "sum"),
        (_ACQUIRE, "", "sum"),
        (_COUNT, "(count[0] += 1) - 1", "sum"),
        (f"part[G] = s;\n    {_RELEASE}", f"part[0] = s;\n    {_RELEASE}", "sum"),
        ("if (last && T == 100)", "if (G == 0 && T == 100)", "sum"),
        ("if (last && T == 100)", "if (T == 100)", "sum"),
        ("__atomic_fetch_add(&out[T], h[T], __ATOMIC_RELAXED)", "out[T] += h[T]", "histogram"),
        (
            "__atomic_fetch_add(&h[x[G * 128 + T] & 15], 1, __ATOMIC_RELAXED)",
            "h[T & 15]++",
            "histogram",
        ),
    ],
)
def test_groups_that_nothing_orders_are_told_of(old, new, name, tmp_path, right):
    assert _SOURCE.count(old) == 1
    findings, _ = _run(_compile(right[0], _SOURCE.replace(old, new), tmp_path), name)
    # Where nothing is to be written back, a fence left out is a wait left out.
    assert {finding.kind for finding in findings} & {RACE, WAIT}, findings


def _shifted(device):
    """C[i] = A[n - 1 - i] + 1, 128 threads in a group."""
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), "float32", "A")
    c = refcomp.compute((n,), lambda i: a[n - 1 - i] + 1.0, "C")
    schedule = refcomp.create_schedule(c)
    outer, inner = schedule[c].split(c.op.axis[0], 128)
    schedule[c].bind(outer, refcomp.thread_axis("blockIdx.x"))
    schedule[c].bind(inner, refcomp.thread_axis("threadIdx.x"))
    return refcomp.build(schedule, [a, c], target="rocm -mcpu=gfx942", name="shifted")


def test_launches_follow_each_other():
    """What one launch wrote, other threads of the next one read, and overwrite."""
    device = refcomp.rocm_emulator("gfx942", hazards=True)
    module, values = _shifted(device), np.arange(1000, dtype=np.float32)
    a, c = refcomp.array(values, device), refcomp.array(np.zeros_like(values), device)
    streams = [device.driver.stream(0) for _ in range(2)]
    for stream in streams:
        with stream:
            for _ in range(2):
                module(a, c)
                module(c, a)
    np.testing.assert_array_equal(a.asnumpy(), values + 8)
