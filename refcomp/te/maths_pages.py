"""The manual pages of the functions of one number that `refcomp.te.maths` makes from intrinsics.

Each page gives the definition, the values at the ends of the domain, and an example with its
results. Operand kinds and error bounds come from the table `INTRINSICS`. A test runs each example.
"""

from __future__ import annotations

from refcomp.foundation.records import record
from refcomp.ir.intrinsics import INTRINSICS


@record
class MathsPage:
    """The part of a page that differs from function to function."""

    summary: str  # the definition, as an imperative sentence
    ends: str  # values at the ends of the domain
    source: str  # where the function is defined
    given: str  # operands of the example, as the items of a numpy array
    shown: str  # what the example prints
    dtype: str = "float32"  # of the operands


_FLOATS = "of dtype f16, bf16, f32 or f64. An integer becomes f32 first."
_INTEGERS = "of an integer dtype, i8 to i64 or u8 to u64."
_PLACES = "at most {ulp:g} units in the last place from the exact value (f32, f64)"

_TEXT = """{summary}

{ends}

Args:
    x: an expression or a number {operands}

Returns:
    An expression of dtype {result}, {accuracy}.

Raises:
    UserError: x has another dtype, such as {refused}.

Source: {source}.

Example::

    >>> x = np.array([{given}], "{dtype}")
    >>> X = rc.placeholder(x.shape, "{dtype}", name="X")
    >>> Y = rc.compute(x.shape, lambda i: rc.{name}(X[i]), name="Y")
    >>> (y,) = rc.oracle.evaluate([Y], {{X: x}})
    >>> print({printed})
    {shown}
"""


def page_of(name: str) -> str:
    """Return the manual page of the function that is named like its intrinsic `name`."""
    page = _PAGES[name]
    intrinsic = INTRINSICS[name]
    takes_floats = "float" in intrinsic.kinds
    return _TEXT.format(
        name=name,
        summary=page.summary,
        ends=page.ends,
        operands=_FLOATS if takes_floats else _INTEGERS,
        result="bool"
        if intrinsic.result_bool
        else "of x, after that conversion"
        if takes_floats
        else "of x",
        accuracy=_PLACES.format(ulp=intrinsic.ulp) if intrinsic.ulp else "exact",
        refused="bool" if takes_floats else "bool or a float",
        source=page.source,
        given=page.given,
        dtype=page.dtype,
        printed="y.round(4)" if intrinsic.ulp else "y",
        shown=page.shown,
    )


# fmt: off
_PAGES = {
    "exp": MathsPage(
        summary="Return e to the power x.",
        ends="exp(-inf) is 0. A result above the largest number of the dtype is inf. NaN "
            "gives NaN.",
        source="C11 7.12.6.1",
        given="0, 1, 89, -np.inf, np.inf, np.nan",
        shown="[1.     2.7183    inf 0.        inf    nan]",
    ),
    "exp2": MathsPage(
        summary="Return 2 to the power x.",
        ends="exp2(-inf) is 0. A result above the largest number of the dtype is inf. NaN "
            "gives NaN.",
        source="C11 7.12.6.2",
        given="0, 0.5, 128, -np.inf, np.inf, np.nan",
        shown="[1.     1.4142    inf 0.        inf    nan]",
    ),
    "exp10": MathsPage(
        summary="Return 10 to the power x.",
        ends="exp10(-inf) is 0. A result above the largest number of the dtype is inf. NaN "
            "gives NaN.",
        source="IEEE 754-2019, table 9.1; C23 7.12.6.2",
        given="0, 2, 39, -np.inf, np.inf, np.nan",
        shown="[  1. 100.  inf   0.  inf  nan]",
    ),
    "expm1": MathsPage(
        summary="Return exp(x) - 1, which is accurate also where x is close to 0.",
        ends="expm1(-inf) is -1. A result above the largest number of the dtype is inf. NaN "
            "gives NaN.",
        source="C11 7.12.6.3",
        given="0, 1, 89, -np.inf, np.inf, np.nan",
        shown="[ 0.      1.7183     inf -1.         inf     nan]",
    ),
    "log": MathsPage(
        summary="Return the natural logarithm of x.",
        ends="log(0) is -inf. A negative x gives NaN. NaN gives NaN.",
        source="C11 7.12.6.7",
        given="1, 2, 0, -1, np.inf, np.nan",
        shown="[0.     0.6931   -inf    nan    inf    nan]",
    ),
    "log2": MathsPage(
        summary="Return the logarithm of x to base 2.",
        ends="log2(0) is -inf. A negative x gives NaN. NaN gives NaN.",
        source="C11 7.12.6.10",
        given="1, 8, 0, -1, np.inf, np.nan",
        shown="[  0.   3. -inf  nan  inf  nan]",
    ),
    "log10": MathsPage(
        summary="Return the logarithm of x to base 10.",
        ends="log10(0) is -inf. A negative x gives NaN. NaN gives NaN.",
        source="C11 7.12.6.8",
        given="1, 1000, 0, -1, np.inf, np.nan",
        shown="[  0.   3. -inf  nan  inf  nan]",
    ),
    "log1p": MathsPage(
        summary="Return log(1 + x), which is accurate also where x is close to 0.",
        ends="log1p(-1) is -inf. An x below -1 gives NaN. NaN gives NaN.",
        source="C11 7.12.6.9",
        given="0, 1, -1, -2, np.inf, np.nan",
        shown="[0.     0.6931   -inf    nan    inf    nan]",
    ),
    "sqrt": MathsPage(
        summary="Return the square root of x, correctly rounded.",
        ends="sqrt(-0.0) is -0.0. A negative x gives NaN. NaN gives NaN.",
        source="IEEE 754-2019, 5.4.1; C11 7.12.7.5",
        given="4, 2.25, -0.0, -1, np.inf, np.nan",
        shown="[ 2.   1.5 -0.   nan  inf  nan]",
    ),
    "rsqrt": MathsPage(
        summary="Return 1 / sqrt(x).",
        ends="rsqrt(0.0) is inf and rsqrt(-0.0) is -inf. A negative x gives NaN. NaN gives NaN.",
        source="rSqrt of IEEE 754-2019, table 9.1",
        given="4, 2, 0.0, -0.0, -1, np.inf, np.nan",
        shown="[0.5    0.7071    inf   -inf    nan 0.        nan]",
    ),
    "erf": MathsPage(
        summary="Return the error function, 2 / sqrt(pi) times the integral of exp(-t * t) "
            "from 0 to x.",
        ends="erf(-inf) is -1 and erf(inf) is 1. NaN gives NaN.",
        source="C11 7.12.8.1",
        given="0, 1, -np.inf, np.inf, np.nan",
        shown="[ 0.      0.8427 -1.      1.         nan]",
    ),
    "sigmoid": MathsPage(
        summary="Return the logistic function 1 / (1 + exp(-x)).",
        ends="sigmoid(-inf) is 0 and sigmoid(inf) is 1. NaN gives NaN.",
        source="TVM, topi.sigmoid",
        given="0, 1, -1, -np.inf, np.inf, np.nan",
        shown="[0.5    0.7311 0.2689 0.     1.        nan]",
    ),
    "sin": MathsPage(
        summary="Return the sine of x, an angle in radians.",
        ends="An infinite x gives NaN. sin(-0.0) is -0.0. NaN gives NaN.",
        source="C11 7.12.4.6",
        given="0, -0.0, 1, -1, np.inf, np.nan",
        shown="[ 0.     -0.      0.8415 -0.8415     nan     nan]",
    ),
    "cos": MathsPage(
        summary="Return the cosine of x, an angle in radians.",
        ends="An infinite x gives NaN. NaN gives NaN.",
        source="C11 7.12.4.5",
        given="0, 1, 2, np.inf, np.nan",
        shown="[ 1.      0.5403 -0.4161     nan     nan]",
    ),
    "tan": MathsPage(
        summary="Return the tangent of x, an angle in radians.",
        ends="An infinite x gives NaN. tan(-0.0) is -0.0. NaN gives NaN.",
        source="C11 7.12.4.7",
        given="0, -0.0, 1, -1, np.inf, np.nan",
        shown="[ 0.     -0.      1.5574 -1.5574     nan     nan]",
    ),
    "asin": MathsPage(
        summary="Return the angle in [-pi/2, pi/2] radians whose sine is x.",
        ends="An x outside of [-1, 1] gives NaN. NaN gives NaN.",
        source="C11 7.12.4.2",
        given="0, 1, -1, 2, np.nan",
        shown="[ 0.      1.5708 -1.5708     nan     nan]",
    ),
    "acos": MathsPage(
        summary="Return the angle in [0, pi] radians whose cosine is x.",
        ends="An x outside of [-1, 1] gives NaN. NaN gives NaN.",
        source="C11 7.12.4.1",
        given="1, 0, -1, 2, np.nan",
        shown="[0.     1.5708 3.1416    nan    nan]",
    ),
    "atan": MathsPage(
        summary="Return the angle in [-pi/2, pi/2] radians whose tangent is x.",
        ends="atan(-inf) is -pi/2 and atan(inf) is pi/2. NaN gives NaN.",
        source="C11 7.12.4.3",
        given="0, 1, -np.inf, np.inf, np.nan",
        shown="[ 0.      0.7854 -1.5708  1.5708     nan]",
    ),
    "sinh": MathsPage(
        summary="Return the hyperbolic sine (exp(x) - exp(-x)) / 2.",
        ends="An infinite x gives itself. A result beyond the largest number of the dtype "
            "is infinite. NaN gives NaN.",
        source="C11 7.12.5.5",
        given="0, 1, -90, -np.inf, np.inf, np.nan",
        shown="[0.     1.1752   -inf   -inf    inf    nan]",
    ),
    "cosh": MathsPage(
        summary="Return the hyperbolic cosine (exp(x) + exp(-x)) / 2.",
        ends="An infinite x gives inf. A result above the largest number of the dtype is "
            "inf. NaN gives NaN.",
        source="C11 7.12.5.4",
        given="0, 1, -90, -np.inf, np.inf, np.nan",
        shown="[1.     1.5431    inf    inf    inf    nan]",
    ),
    "tanh": MathsPage(
        summary="Return the hyperbolic tangent sinh(x) / cosh(x).",
        ends="tanh(-inf) is -1 and tanh(inf) is 1. tanh(-0.0) is -0.0. NaN gives NaN.",
        source="C11 7.12.5.6",
        given="0, -0.0, 1, -np.inf, np.inf, np.nan",
        shown="[ 0.     -0.      0.7616 -1.      1.         nan]",
    ),
    "asinh": MathsPage(
        summary="Return the number whose hyperbolic sine is x.",
        ends="An infinite x gives itself. NaN gives NaN.",
        source="C11 7.12.5.2",
        given="0, 1, -np.inf, np.inf, np.nan",
        shown="[0.     0.8814   -inf    inf    nan]",
    ),
    "acosh": MathsPage(
        summary="Return the number of at least 0 whose hyperbolic cosine is x.",
        ends="acosh(inf) is inf. An x below 1 gives NaN. NaN gives NaN.",
        source="C11 7.12.5.1",
        given="1, 2, 0.5, np.inf, np.nan",
        shown="[0.    1.317   nan   inf   nan]",
    ),
    "atanh": MathsPage(
        summary="Return the number whose hyperbolic tangent is x.",
        ends="atanh(-1) is -inf and atanh(1) is inf. An x outside of [-1, 1] gives NaN. NaN "
            "gives NaN.",
        source="C11 7.12.5.3",
        given="0, 0.5, 1, -1, 2, np.nan",
        shown="[0.     0.5493    inf   -inf    nan    nan]",
    ),
    "floor": MathsPage(
        summary="Return the largest integer that is not above x, as a float.",
        ends="A zero or an infinity gives itself. NaN gives NaN.",
        source="C11 7.12.9.2",
        given="1.5, -1.5, -0.0, -np.inf, np.inf, np.nan",
        shown="[  1.  -2.  -0. -inf  inf  nan]",
    ),
    "ceil": MathsPage(
        summary="Return the smallest integer that is not below x, as a float.",
        ends="A zero or an infinity gives itself. An x between -1 and 0 gives -0.0. NaN "
            "gives NaN.",
        source="C11 7.12.9.1",
        given="1.5, -1.5, -0.5, -np.inf, np.inf, np.nan",
        shown="[  2.  -1.  -0. -inf  inf  nan]",
    ),
    "trunc": MathsPage(
        summary="Return x without its fraction, as a float.",
        ends="A zero or an infinity gives itself. An x between -1 and 0 gives -0.0. NaN "
            "gives NaN.",
        source="C11 7.12.9.8",
        given="1.5, -1.5, -0.5, -np.inf, np.inf, np.nan",
        shown="[  1.  -1.  -0. -inf  inf  nan]",
    ),
    "round": MathsPage(
        summary="Return the integer nearest to x, as a float. A tie goes to the even integer.",
        ends="A zero or an infinity gives itself. C's round differs: its ties go away from "
            "zero. NaN gives NaN.",
        source="roundToIntegralTiesToEven of IEEE 754-2019, 5.9; C23 roundeven",
        given="0.5, 1.5, 2.5, -0.5, np.inf, np.nan",
        shown="[ 0.  2.  2. -0. inf nan]",
    ),
    "isnan": MathsPage(
        summary="Return True if x is NaN.",
        ends="An infinity is not a NaN.",
        source="C11 7.12.3.4",
        given="1, np.inf, np.nan",
        shown="[False False  True]",
    ),
    "isinf": MathsPage(
        summary="Return True if x is inf or -inf.",
        ends="NaN is not infinite.",
        source="C11 7.12.3.3",
        given="1, -np.inf, np.inf, np.nan",
        shown="[False  True  True False]",
    ),
    "isfinite": MathsPage(
        summary="Return True if x is neither infinite nor NaN.",
        ends="NaN is not finite.",
        source="C11 7.12.3.2",
        given="1, -np.inf, np.inf, np.nan",
        shown="[ True False False False]",
    ),
    "popcount": MathsPage(
        summary="Return the number of bits of x that are 1.",
        ends="A negative x counts the bits of its two's complement.",
        source="C23 stdc_count_ones; LLVM ctpop",
        given="0, 1, 255, -1",
        shown="[ 0  1  8 32]",
        dtype="int32",
    ),
    "clz": MathsPage(
        summary="Return the number of leading zero bits of x.",
        ends="clz(0) is the width of the dtype in bits.",
        source="C23 stdc_leading_zeros; LLVM ctlz with its second operand false",
        given="0, 1, 255, -1",
        shown="[32 31 24  0]",
        dtype="int32",
    ),
}
# fmt: on
