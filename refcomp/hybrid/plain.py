"""What the words of hybrid functions mean when Python itself runs them, on numpy arrays."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.dtype import SCALAR_DTYPES, as_dtype, to_numpy

LOOP_WORDS = {
    "range": "serial",
    "serial": "serial",
    "parallel": "parallel",
    "vectorize": "vectorized",
    "unroll": "unrolled",
}
CASTS = {str(to_numpy(dtype)): dtype for dtype in SCALAR_DTYPES}

# Maths that numpy has under the same name.
_SAME = "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh floor ceil trunc abs"
_SAME += " isnan isinf isfinite hypot copysign"
_ARC = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
_ARC |= {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}


def _output_tensor(shape: Any, dtype: Any = "float32") -> Any:
    return np.zeros(shape, to_numpy(as_dtype(dtype)))


def _allocate(shape: Any, dtype: Any = "float32", scope: str = "global") -> Any:
    return np.zeros(shape, to_numpy(as_dtype(dtype)))


def _bind(tag: str, extent: int) -> range:
    return range(extent)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _cast(name: str) -> Callable[[Any], Any]:
    dtype = to_numpy(CASTS[name])
    return lambda value: np.asarray(value).astype(dtype)[()]


NAMES: dict[str, Any] = {
    **dict.fromkeys(LOOP_WORDS, range),
    "const_range": range,
    "bind": _bind,
    "output_tensor": _output_tensor,
    "allocate": _allocate,
    **{name: _cast(name) for name in CASTS},
    **{name: getattr(np, name) for name in _SAME.split()},
    **{name: getattr(np, numpy_name) for name, numpy_name in _ARC.items()},
    "exp10": lambda x: np.power(10.0, x),
    "pow": np.power,
    "power": np.power,
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": _sigmoid,
    "select": lambda condition, yes, no: yes if condition else no,
    "if_then_else": lambda condition, yes, no: yes if condition else no,
}


def run(function: Any, args: tuple[Any, ...]) -> Any:
    """Runs the function as Python does, with the words of hybrid functions in reach."""
    names = NAMES | {"__builtins__": function.__globals__.get("__builtins__", {})}
    own = {k: v for k, v in function.__globals__.items() if k not in NAMES}
    plain = types.FunctionType(
        function.__code__,
        names | own,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return plain(*args)
