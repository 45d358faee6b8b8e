"""Gradients of every operator: along a random direction, against a difference quotient in f64.

By day 4 samples of an operator are differentiated, with --nightly 60.
"""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import refcomp as rc
from refcomp.te.operation import reachable_operations
from refcomp.topi.draws import Draws
from refcomp.topi.operator import find_operator
from refcomp.topi.sources import OPERATOR_HOMES
from tests.samples import sample_count

pytestmark = pytest.mark.search
# Should two candidates of a maximum be so close that the first step changes their order, the second
# does not.
STEPS = (1e-6, 1e-8)
# Operators that do not take f64 in place of a narrower float.
FIXED_WIDTHS = {"bitcast", "dynamic_quantize_linear"}
# Operators of loops which are no computes, so that they have no gradient: `det` finds an order, the
# others read rows of many lengths.
EXTERN = {"det", "csrmm", "sparse_dense", "csrmm_transposed", "csr_sampled_matmul"}
# A smaller seed is no simpler sample, so nothing is gained by shrinking.
few = settings(max_examples=sample_count(by_day=4, nightly=60), phases=[Phase.generate])


def _read(tensors, feeds):
    operations = reachable_operations([tensor.op for tensor in tensors])
    return {tensor: array for tensor, array in feeds.items() if tensor.op in operations}


def _computation(name, seed):
    """Return the float results of a sample with f64 operands, and the operands."""
    operator = find_operator(name)
    sample = operator.sample(Draws(seed))
    random = np.random.default_rng(seed)
    feeds, operands = {}, []
    for place, array in enumerate(sample.operands):
        if array is None:
            operands.append(None)
            continue
        if rc.as_dtype(array.dtype).is_float:
            array = random.uniform(0.1, 0.9, array.shape)  # where most functions are smooth
        operands.append(rc.placeholder(array.shape, array.dtype, name=f"p{place}"))
        feeds[operands[-1]] = array
    attributes = dict(sample.attributes)
    if "float" in str(attributes.get("out_dtype")):
        attributes["out_dtype"] = "float64"  # as all floats
    made = operator.compute(*operands, **attributes)
    outputs = made if isinstance(made, list) else [made]
    # Differences of narrower floats would be rounding errors.
    return [output for output in outputs if output.dtype == rc.as_dtype("float64")], feeds


def _slopes(output, feeds, random):
    """Return the slope of the weighted output: by the gradient, and by differences."""
    read = _read([output], feeds)
    wanted = [tensor for tensor in read if tensor.dtype.is_float]
    if not wanted:
        return None
    head = rc.placeholder(output.shape, output.dtype, name="head")
    gradients = rc.te.gradient(output, wanted, head)
    (value,) = rc.oracle.evaluate([output], read)
    if not np.isfinite(value).all():  # such as the mean of no elements: it has no slope
        return None
    weights = random.standard_normal(value.shape).astype(value.dtype)
    found = rc.oracle.evaluate(gradients, _read(gradients, {**feeds, head: weights}))
    direction = {tensor: random.standard_normal(feeds[tensor].shape) for tensor in wanted}
    analytic = sum(float((g * direction[t]).sum()) for g, t in zip(found, wanted, strict=True))

    def moved(step):
        moved_feeds = {t: a + step * direction[t] if t in direction else a for t, a in read.items()}
        (value,) = rc.oracle.evaluate([output], moved_feeds)
        return float((value * weights).sum())

    return analytic, [(moved(step) - moved(-step)) / (2 * step) for step in STEPS]


@pytest.mark.parametrize("name", sorted({*OPERATOR_HOMES} - FIXED_WIDTHS - EXTERN))
@few
@given(st.integers(0, 2**20))
def test_gradient_is_the_slope(name, seed):
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        outputs, feeds = _computation(name, seed)
        for output in outputs:
            slopes = _slopes(output, feeds, random)
            if slopes is not None:
                analytic, differences = slopes
                # The first has an error of some 1e-12, the second of 1e-8 by rounding.
                near = [pytest.approx(d, rel=1e-5, abs=1e-6, nan_ok=True) for d in differences]
                assert analytic in near, output
