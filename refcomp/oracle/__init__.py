"""The judge: the meaning of every layer, written plainly and apart from what it judges.

::

    from refcomp import oracle

    (expected,) = oracle.evaluate([C], {A: a, B: b})       # te, by numpy
    oracle.interpret(rc.lower(s, [A, B, C]), [a, b, c])    # loop IR, statement by statement
    (bounded,) = oracle.bound_errors([C], {A: a, B: b})    # each element with its error bound
    print(oracle.judge_bounded(c, bounded))

- `tensors/`: te by numpy
- `interpreter/`: the loop IR, statement by statement; the definition
- `floats/`: bounds of rounding errors, which say which floats are legal results
- `exact/`: comparison in a finite field, where nothing rounds
- `lockstep/`: a fast way to interpret, which only finds that all is well
- `compare.py`: compares an array with the expected one
- `watch.py`: lists the writes to one element
- `whole_outputs.py`: interprets functions that must write all of their outputs
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
