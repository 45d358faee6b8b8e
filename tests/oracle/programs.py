"""What tests of the interpreter make programs of, and how they run them."""

import numpy as np

from refcomp.foundation.dtype import F32, I64
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Broadcast, IntImm, Ramp
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.oracle.lockstep.interpret import interpret


def integer(value):
    """A constant of dtype i64."""
    return IntImm(value, I64)


def zeros(*shape, dtype=np.float32):
    """Zeros of that shape."""
    return np.zeros(shape, dtype)


def run_text(text, *args):
    """Interprets the function of that text."""
    interpret(parse_func(text), args)


def flat_func(body_of, length=4):
    """A function of A, of `length` elements, and its output B, of 4; of them the body is made."""
    a, b = Buffer("A", F32, (integer(length),)), Buffer("B", F32, (integer(4),))
    return PrimFunc("f", (a, b), body_of(a, b), ("B",))


LANES = Ramp(integer(0), integer(1), 4)
MASK = ir.LT(LANES, Broadcast(integer(2), 4))  # the first two of four lanes
