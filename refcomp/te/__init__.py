"""Tensor expressions: what to compute, without saying how.

Reading order: tensor.py (tensors, axes, shapes), operation.py (`placeholder`, `compute`), maths.py
and calls.py (functions of elements), conversion.py (`convert`), reducer.py (`sum` and its kin),
tensor_operators.py and extents.py (`A + B` of whole tensors). Then follow dependent_ranges.py
(ranges of reductions that depend on other axes), check_reads.py and check_reducer.py (refused
computations), scans.py, externs.py, declare.py, intrin.py, tag.py and gradients/. maths_pages.py
holds manual pages.

Example::

    >>> from refcomp import te
    >>> n = te.var("n")
    >>> A = te.placeholder((n, n), "float32", name="A")
    >>> k = te.reduce_axis((0, n), name="k")
    >>> B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    >>> print(rc.lower(te.create_schedule(B), [A, B], "rows"))
    func rows(A: f32[n, n], B: f32[n] out) {
      for i in range(n) {
        B[i] = 0.0f32
        for k in range(n) {
          B[i] = B[i] + A[i, k]
        }
      }
    }
"""

import sys
from importlib import import_module
from typing import Any

_SOURCES = {
    "refcomp.ir.promotion": "const",
    "refcomp.te.calls": (
        "call_extern call_llvm_intrin call_packed call_pure_extern call_pure_intrin "
        "trace"
    ),
    "refcomp.te.conversion": "convert",
    "refcomp.te.declare": "decl_buffer",
    "refcomp.te.externs": "extern",
    "refcomp.te.gradients.gradient": "gradient",
    "refcomp.te.hybrid_operation": "HybridOp",
    "refcomp.te.intrin": "TensorIntrin decl_tensor_intrin",
    "refcomp.te.maths": (
        "abs acos acosh all any asin asinh atan atan2 atanh ceil clz copysign cos cosh erf "
        "exp exp10 exp2 expm1 fabs floor floordiv floormod fma fmod hypot if_then_else "
        "isfinite isinf isnan ldexp likely log log10 log1p log2 max_value maximum min_value "
        "minimum nearbyint nextafter popcount power round rsqrt select sigmoid sin sinh sqrt "
        "tan tanh trunc truncdiv truncmod"
    ),
    "refcomp.te.operation": (
        "ComputeOp ExternOp Operation PlaceholderOp ScanOp compute placeholder"
    ),
    "refcomp.te.reducer": "CommReducer comm_reducer max min prod reduce_axis sum",
    "refcomp.te.scans": "scan",
    "refcomp.te.tag": "tag_scope",
    "refcomp.te.tensor": "IterVar Tensor TensorSlice thread_axis var",
    # TVM's te has it, too. That room is above this one.
    "refcomp.schedule.schedule": "create_schedule",
}
_HOME = {
    name: (module, name) for module, names in _SOURCES.items() for name in names.split()
}
# Names of TVM.
_HOME["pow"] = ("refcomp.te.maths", "power")

# fmt: off
__all__ = [
    "placeholder", "compute", "var", "const", "convert", "create_schedule",
    "reduce_axis", "sum", "prod", "max", "min", "comm_reducer",
    "scan", "extern", "decl_buffer", "decl_tensor_intrin", "tag_scope", "thread_axis",
    "gradient",
    "call_packed", "call_extern", "call_pure_extern", "call_pure_intrin", "call_llvm_intrin",
    "trace",
    "abs", "fabs", "minimum", "maximum", "min_value", "max_value",
    "select", "if_then_else", "likely", "all", "any", "isfinite", "isinf", "isnan",
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "pow", "power",
    "sqrt", "rsqrt", "hypot", "fma", "sigmoid", "erf", "ldexp", "copysign", "nextafter",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "floor", "ceil", "trunc", "round", "nearbyint", "fmod",
    "floordiv", "floormod", "truncdiv", "truncmod", "popcount", "clz",
    "Tensor", "TensorSlice", "IterVar", "CommReducer", "TensorIntrin",
    "Operation", "PlaceholderOp", "ComputeOp", "ScanOp", "ExternOp",
    "HybridOp",
]
# fmt: on


def __getattr__(name: str) -> Any:
    """Return a public name, and import its file on first use: a program needs few of them."""
    if name not in _HOME:
        # Python suggests a near name of the module.
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}",
            name=name,
            obj=sys.modules[__name__],
        )
    module, attribute = _HOME[name]
    value = globals()[name] = getattr(import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
