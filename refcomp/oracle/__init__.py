"""The judge: the meaning of every layer, written plainly and apart from what it judges.

- `tensors/`: te by numpy
- `interpreter/`: the loop IR, statement by statement; the definition
- `floats/`: bounds of rounding errors, which say which floats are legal results
- `exact/`: comparison in a finite field, where nothing rounds
- `lockstep/`: a fast way to interpret, which only finds that all is well
- `compare.py`: compares an array with the expected one
- `watch.py`: lists the writes to one element
- `whole_outputs.py`: interprets functions that must write all of their outputs

Example::

    >>> A = rc.placeholder((3,), name="A")
    >>> B = rc.compute((3,), lambda i: A[i] * 0.1, name="B")
    >>> a, b = np.array([1, 2, 3], "float32"), np.zeros(3, "float32")
    >>> (expected,) = rc.oracle.evaluate([B], {A: a})  # te, by numpy
    >>> rc.oracle.interpret(rc.lower(rc.create_schedule(B), [A, B]), [a, b])  # loop IR
    >>> rc.oracle.compare(b, expected).agrees
    True
    >>> (bounded,) = rc.oracle.bound_errors([B], {A: a})  # each element with its error bound
    >>> print(rc.oracle.judge_bounded(b, bounded))
    3 elements: 3 exact, 0 within bound, 0 wrong
"""

from refcomp.oracle.compare import Report, compare, judge_bounded
from refcomp.oracle.floats.error_bounds import Bounded, Licence, bound_errors
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.evaluate import EvaluateError, evaluate
from refcomp.oracle.whole_outputs import interpret_whole

# fmt: off
__all__ = [
    "evaluate", "interpret", "interpret_whole",
    "compare", "judge_bounded", "bound_errors", "Report", "Bounded", "Licence",
    "EvaluateError", "InterpretError",
]
# fmt: on


def __dir__() -> list[str]:
    return sorted(__all__)
