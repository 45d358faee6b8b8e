"""refcomp: a reference compiler for tensor programs, made to be read and to be believed.

An architecture tour. A computation passes through these rooms from top to bottom:

1. te/          what to compute: `compute`, reductions, scans    te/operation.py
2. schedule/    how to compute it, as recorded primitives        schedule/schedule.py
3. lowering/    from both to one function of the loop IR         lowering/lower.py
4. ir/          the loop IR: nodes, text form, verifier          ir/expr.py, ir/stmt.py
5. arith/       facts about integers, simplifier, proofs         arith/facts.py
6. passes/      from loop IR to loop IR, see driver/steps.py     passes/flatten_storage.py
7. codegen/     from loop IR to text, spelled by templates/      codegen/llvm/module.py
8. toolchain/   from text to machine code, see toolchains/       toolchain/compile.py
9. runtime/     from machine code to a callable; arrays          runtime/module.py
10. driver/     back ends: what each target runs, in order       driver/backends/
11. compiler.py all of the above on one screen; building.py is its door

The last column is the file to begin with.

Rooms beside this path:

- foundation/ has what all rooms use: errors, dtypes, targets, options, caches.
- oracle/ defines what every stage means, by numpy and by a plain interpreter.
- emulator/ runs AMD machine code without a GPU.
- certificates/ find the step that changed a result.
- topi/, graph/ and frontend/ bring operators, models and ONNX.
- classic/ has the names of the classic system as aliases.
- cli/ makes each stage a command.

The walkthrough scripts/walkthroughs/matmul.py follows one matrix product along this tour.

Public names are resolved on first use, so that `import refcomp` stays quick.
"""

import sys
from importlib import import_module
from typing import Any

from refcomp.foundation import lent_arrays

__version__ = "0.1.0"

_MODULES = (
    "topi",
    "contrib",
    "te",
    "schedule",
    "ir",
    "graph",
    "frontend",
    "onnx_backend",
    "runtime",
    "oracle",
    "profile",
    "target",
    "testing",
    "classic",
)
_SOURCES = {
    "refcomp.foundation.dtype": "DType as_dtype",
    "refcomp.foundation.errors": (
        "CompilerBug OutOfBounds RefcompError ToolchainError Unsupported UserError"
    ),
    "refcomp.foundation.registry": "get_global_func list_global_func_names register_func",
    "refcomp.foundation.target": "Target as_target current_target",
    "refcomp.foundation.generic_func": "generic_func",
    "refcomp.driver.backend": "Backend register_backend",
    "refcomp.foundation.options": "build_options",
    "refcomp.ir.promotion": "const",
    "refcomp.ir.printer": "print_func",
    "refcomp.ir.parser": "parse_func",
    "refcomp.te.operation": "compute placeholder",
    "refcomp.te.declare": "decl_buffer",
    "refcomp.te.externs": "extern",
    "refcomp.te.scans": "scan",
    "refcomp.te.tag": "tag_scope",
    "refcomp.te.intrin": "decl_tensor_intrin",
    "refcomp.te.calls": (
        "call_extern call_llvm_intrin call_packed call_pure_extern call_pure_intrin "
        "trace"
    ),
    "refcomp.te.conversion": "convert",
    "refcomp.te.tensor": "thread_axis var",
    "refcomp.te.reducer": "comm_reducer max min prod reduce_axis sum",
    "refcomp.te.maths": (
        "abs acos acosh all any asin asinh atan atan2 atanh ceil clz copysign cos cosh erf "
        "exp exp10 exp2 expm1 fabs floor floordiv floormod fma fmod hypot if_then_else "
        "isfinite isinf isnan ldexp likely log log10 log1p log2 max_value maximum min_value "
        "minimum nearbyint nextafter popcount power round rsqrt select sigmoid sin sinh sqrt "
        "tan tanh trunc truncdiv truncmod"
    ),
    "refcomp.schedule.schedule": "Schedule create_schedule replay",
    "refcomp.certificates": "Certificate certify",
    "refcomp.building": "build",
    "refcomp.compiler": "build_functions",
    "refcomp.lowering.lower": "lower",
    "refcomp.driver.code_objects": "load_code_object",
    "refcomp.runtime.device": "cpu device",
    "refcomp.driver.cuda_emulator": "cuda_emulator",
    "refcomp.driver.devices": "context cuda gpu opencl rocm rocm_emulator",
    "refcomp.foundation.local_memory": "LocalMemory",
    "refcomp.emulator.observers.counting": "Profile",
    "refcomp.runtime.arrays.ndarray": "NDArray array empty from_dlpack from_numpy",
    "refcomp.runtime.arrays.cuda_array": "from_cuda_array",
    "refcomp.runtime.module_file": "load_module",
    "refcomp.runtime.linked_module": "system_lib",
    "refcomp.frontend.onnx": "from_onnx",
    "refcomp.graph.compile": "compile_graph",
    "refcomp.graph.executor": "GraphExecutor",
}
_HOME = {name: module for module, names in _SOURCES.items() for name in names.split()}
_RENAMED = {
    "pow": ("refcomp.te.maths", "power"),
}

# Modules by their classic names.
_CLASSIC = {
    "nd": "refcomp.runtime.arrays.ndarray",
    "ir_builder": "refcomp.ir.builder",
    "hybrid": "refcomp.hybrid",
    "symbol": "refcomp.graph.symbol",
    "sym": "refcomp.graph.symbol",
}

__all__ = ["__version__", *_CLASSIC, *_HOME, *_RENAMED, *_MODULES]


def _load(name: str) -> Any:
    if name in _CLASSIC:
        return import_module(_CLASSIC[name])
    if name in _MODULES:
        return import_module(f"refcomp.{name}")
    module, attribute = _RENAMED.get(name) or (_HOME.get(name), name)
    if module is None:
        # Python suggests a near name of the module.
        raise AttributeError(
            f"module 'refcomp' has no attribute {name!r}",
            name=name,
            obj=sys.modules[__name__],
        )
    return getattr(import_module(module), attribute)


# Registered functions get arrays of the runtime, whichever room calls them.
lent_arrays.array_maker = lambda copied: _load("from_numpy")(copied)


def __getattr__(name: str) -> Any:
    value = globals()[name] = _load(name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
