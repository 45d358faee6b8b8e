"""Little batches for the tests of this folder, and when two arrays are the same."""

import numpy as np

from refcomp.foundation.dtype import I64
from refcomp.ir.expr import Var
from refcomp.oracle.lockstep.expressions import EXPRESSIONS
from refcomp.oracle.lockstep.threads import Batch, Threads


def batch_of(groups, size, is_kernel=True):
    """A batch of so many groups of `size` threads."""
    return Batch(np.repeat(np.arange(groups), size), size, is_kernel, EXPRESSIONS)


def everyone(batch, **values):
    """All threads of `batch`, and the variables for which each has a value (a list), by name."""
    variables = {name: Var(name, I64) for name in values}
    arrays = {variables[name]: np.array(given)[:, None] for name, given in values.items()}
    return Threads(batch, np.arange(batch.count), arrays), variables


def same_bits(one, two):
    """Whether the elements of two arrays of one dtype are the same; any NaN is any other."""
    one, two = (np.ascontiguousarray(a) for a in (one, two))
    nan = np.zeros(one.shape, bool) if one.dtype.kind in "iub" else (one != one) & (two != two)
    bits = one.reshape(-1).view(np.uint8) == two.reshape(-1).view(np.uint8)
    return bool((bits.reshape(*one.shape, one.itemsize).all(axis=-1) | nan).all())
