"""Tensor expressions: what to compute, without saying how.

Reading order: tensor.py (tensors, axes, shapes), operation.py (`placeholder`, `compute`), maths.py
and calls.py (functions of elements), reducer.py (`sum` and its kin), check_reads.py and
check_reducer.py (refused computations), scan.py, extern.py, declare.py, intrin.py, tag.py;
maths_pages.py holds manual pages.

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
from collections.abc import Callable
from importlib import import_module
from typing import Any

from refcomp.ir.promotion import as_expr as convert
from refcomp.ir.promotion import const
from refcomp.te.calls import (
    call_extern,
    call_llvm_intrin,
    call_packed,
    call_pure_extern,
    call_pure_intrin,
)
from refcomp.te.declare import decl_buffer
from refcomp.te.extern import ExternOp, extern
from refcomp.te.intrin import TensorIntrin, decl_tensor_intrin
from refcomp.te.maths import (
    abs,
    acos,
    acosh,
    all,
    any,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    clz,
    copysign,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    exp10,
    expm1,
    fabs,
    floor,
    floordiv,
    floormod,
    fma,
    fmod,
    hypot,
    if_then_else,
    isfinite,
    isinf,
    isnan,
    ldexp,
    log,
    log1p,
    log2,
    log10,
    max_value,
    maximum,
    min_value,
    minimum,
    nearbyint,
    nextafter,
    popcount,
    power,
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
    truncdiv,
    truncmod,
    var,
)
from refcomp.te.operation import (
    ComputeOp,
    Operation,
    PlaceholderOp,
    compute,
    placeholder,
)
from refcomp.te.reducer import (
    CommReducer,
    comm_reducer,
    max,
    min,
    prod,
    reduce_axis,
    sum,
)
from refcomp.te.scan import ScanOp, scan
from refcomp.te.tag import tag_scope
from refcomp.te.tensor import IterVar, Tensor, thread_axis

pow = power  # TVM's name

# fmt: off
__all__ = [
    "placeholder", "compute", "var", "const", "convert", "create_schedule",
    "reduce_axis", "sum", "prod", "max", "min", "comm_reducer",
    "scan", "extern", "decl_buffer", "decl_tensor_intrin", "tag_scope", "thread_axis",
    "call_packed", "call_extern", "call_pure_extern", "call_pure_intrin", "call_llvm_intrin",
    "abs", "fabs", "minimum", "maximum", "min_value", "max_value",
    "select", "if_then_else", "all", "any", "isfinite", "isinf", "isnan",
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "pow", "power",
    "sqrt", "rsqrt", "hypot", "fma", "sigmoid", "erf", "ldexp", "copysign", "nextafter",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "floor", "ceil", "trunc", "round", "nearbyint", "fmod",
    "floordiv", "floormod", "truncdiv", "truncmod", "popcount", "clz",
    "Tensor", "IterVar", "CommReducer", "TensorIntrin",
    "Operation", "PlaceholderOp", "ComputeOp", "ScanOp", "ExternOp",
]
# fmt: on


def __getattr__(name: str) -> Callable[..., Any]:
    """Return names of TVM's te that belong to schedules here, importing that room on first use."""
    if name != "create_schedule":
        # Python suggests a near name of the module.
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}",
            name=name,
            obj=sys.modules[__name__],
        )
    maker: Callable[..., Any] = import_module(
        "refcomp.schedule.schedule"
    ).create_schedule
    return maker


def __dir__() -> list[str]:
    return sorted(__all__)
