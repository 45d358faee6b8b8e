"""Fixtures of this folder: a shared object from hand-written LLVM IR, and a stand-in for GPUs."""

import pytest

from refcomp.foundation.artifacts import Binary, ScalarParam, Signature, Source, TensorParam
from refcomp.foundation.dtype import F32, I32, SCALAR_DTYPES, as_dtype
from refcomp.runtime.device import _DRIVERS, Device, device
from refcomp.runtime.module import Module
from refcomp.toolchain import compile_source, host_triple_and_layout
from tests.runtime.cuda.recording_pycuda import RecordingPycuda, driver_of

_IR = """
define i32 @add(ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %n, i32 %threads) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %exit
body:
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %pc = getelementptr float, ptr %c, i64 %i
  %x = load float, ptr %pa, align 4
  %y = load float, ptr %pb, align 4
  %s = fadd float %x, %y
  store float %s, ptr %pc, align 4
  %next = add i64 %i, 1
  br label %head
exit:
  ret i32 0
}

; Each scalar goes to its own 8 bytes of the output.
define i32 @scalars(ptr %o, SCALAR_PARAMS, i32 %threads) {
SCALAR_STORES
  ret i32 0
}

define i32 @mangled_threads(ptr %o, i32 %threads) {
  store i32 %threads, ptr %o
  ret i32 0
}

define i32 @no_memory(i32 %threads) {
  ret i32 1
}

define i32 @broken(i32 %threads) {
  ret i32 7
}

declare void @GOMP_parallel(ptr, ptr, i32, i32)

define internal void @count(ptr %o) {
  %old = atomicrmw add ptr %o, i32 1 seq_cst
  ret void
}

; Counts the threads that run a parallel region.
define i32 @region(ptr %o, i32 %threads) {
  store i32 0, ptr %o
  %serial = icmp eq i32 %threads, 1
  br i1 %serial, label %one, label %many
one:
  call void @count(ptr %o)
  ret i32 0
many:
  call void @GOMP_parallel(ptr @count, ptr %o, i32 %threads, i32 0)
  ret i32 0
}

; Returns when two calls are inside at once; gives up with status 1.
define i32 @meet(ptr %o, i32 %threads) {
entry:
  %old = atomicrmw add ptr %o, i32 1 seq_cst
  br label %wait
wait:
  %turn = phi i64 [ 0, %entry ], [ %next, %again ]
  %seen = load atomic i32, ptr %o seq_cst, align 4
  %met = icmp sge i32 %seen, 2
  br i1 %met, label %yes, label %again
again:
  %next = add i64 %turn, 1
  %late = icmp sgt i64 %next, 20000000000
  br i1 %late, label %no, label %wait
yes:
  ret i32 0
no:
  ret i32 1
}
"""
_LLVM_TYPES = {"f32": "float", "f64": "double", "bool": "i8"}

ADD = Signature(
    "add",
    (
        TensorParam("A", F32, ("n",)),
        TensorParam("B", F32, ("n",)),
        TensorParam("C", F32, ("n",), is_output=True),
    ),
    ("n",),
)
SCALARS = Signature(
    "scalars",
    (
        TensorParam("O", as_dtype("u8"), (8 * len(SCALAR_DTYPES),), is_output=True),
        *(ScalarParam(f"x_{dtype}", dtype) for dtype in SCALAR_DTYPES),
    ),
)
_COUNTER = (TensorParam("O", I32, (1,), is_output=True),)
SIGNATURES = (
    ADD,
    SCALARS,
    Signature("threads", _COUNTER),
    Signature("no_memory", ()),
    Signature("broken", ()),
    Signature("region", _COUNTER),
    Signature("meet", _COUNTER),
)
SYMBOLS = {"threads": "mangled_threads"}


def _ir() -> str:
    params, stores = [], []
    for position, dtype in enumerate(SCALAR_DTYPES):
        llvm = _LLVM_TYPES.get(str(dtype), f"i{dtype.bits}")
        params.append(f"{llvm} %x{position}")
        stores.append(f"  %p{position} = getelementptr i8, ptr %o, i64 {8 * position}")
        stores.append(f"  store {llvm} %x{position}, ptr %p{position}, align 1")
    text = _IR.replace("SCALAR_PARAMS", ", ".join(params))
    return text.replace("SCALAR_STORES", "\n".join(stores))


@pytest.fixture(scope="session")
def source() -> Source:
    triple, layout = host_triple_and_layout()
    header = f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'
    return Source(header + _ir(), "llvm", requires=frozenset({"libgomp"}))


@pytest.fixture(scope="session")
def binary(source: Source) -> Binary:
    return compile_source(source, {}, "so")


@pytest.fixture
def module(binary: Binary, source: Source) -> Module:
    """All functions of the shared object; the entry is `add`."""
    return Module.from_binary(
        binary,
        SIGNATURES,
        target="llvm",
        sources={"loop_ir": "func add", "llvm": source.text},
        symbols=SYMBOLS,
        disassemble=lambda: "assembly",
    )


@pytest.fixture
def cuda_gpu(monkeypatch: pytest.MonkeyPatch) -> tuple[RecordingPycuda, Device]:
    """Let the kind `cuda` be a stand-in for pycuda; return it and GPU number 0."""
    recording = RecordingPycuda()
    monkeypatch.setitem(_DRIVERS, "cuda", driver_of(recording))
    return recording, device("cuda")
