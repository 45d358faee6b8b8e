"""The meaning of the words of hybrid functions when Python itself runs them, on numpy arrays."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

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
_SAME_NAMES = (
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh floor ceil trunc abs "
    "isnan isinf isfinite hypot copysign"
)
_OTHER_NAMES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "pow": "power",
    "power": "power",
    "round": "rint",
}


def _zeros(
    shape: int | Sequence[int], dtype: str = "float32", scope: str = "global"
) -> npt.NDArray[np.generic]:
    return np.zeros(shape, to_numpy(as_dtype(dtype)))


def _cast(name: str) -> Callable[[npt.ArrayLike], object]:
    dtype = to_numpy(CASTS[name])
    return lambda value: np.asarray(value).astype(dtype)[()]


def _popcount(value: np.integer) -> np.integer:
    """Return the number of ones among the bits of an integer, in its dtype."""
    mask = (1 << value.dtype.itemsize * 8) - 1
    return value.dtype.type((int(value) & mask).bit_count())


NAMES: dict[str, Callable[..., object]] = {
    **dict.fromkeys(LOOP_WORDS, range),
    "const_range": range,
    "bind": lambda _tag, extent: range(extent),
    "output_tensor": _zeros,
    "allocate": _zeros,
    **{name: _cast(name) for name in CASTS},
    **{name: getattr(np, name) for name in _SAME_NAMES.split()},
    **{name: getattr(np, other) for name, other in _OTHER_NAMES.items()},
    "exp10": lambda x: np.power(10.0, x),
    "popcount": _popcount,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "select": lambda condition, yes, no: yes if condition else no,
    "if_then_else": lambda condition, yes, no: yes if condition else no,
}


def run(function: Callable[..., object], args: Sequence[object]) -> object:
    """Run the function as Python does, with the words of hybrid functions in reach."""
    builtins = function.__globals__.get("__builtins__", {})
    # The words are meant even where the user's module has other things of these names.
    names: Mapping[str, object] = function.__globals__ | NAMES
    plain = types.FunctionType(
        function.__code__,
        {**names, "__builtins__": builtins},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return plain(*args)
