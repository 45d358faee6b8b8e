"""The judge: the meaning of every layer, written plainly and apart from what it judges.

    from refcomp import oracle

    (expected,) = oracle.evaluate([C], {A: a, B: b})       # te, by numpy
    oracle.interpret(rc.lower(s, [A, B, C]), [a, b, c])    # loop IR, statement by statement
    (bounded,) = oracle.bound_errors([C], {A: a, B: b})    # each element with its largest error
    print(oracle.judge_bounded(c, bounded))

Reading order: evaluate.py (te), interpret.py (loop IR), compare.py and error_bounds.py (which
results are right), field.py (programs over a prime field); lockstep/ is the fast way to interpret.
"""

from refcomp.oracle.compare import Report, compare, judge_bounded
from refcomp.oracle.error_bounds import Bounded, Licence, bound_errors
from refcomp.oracle.evaluate import EvaluateError, evaluate
from refcomp.oracle.failure import InterpretError
from refcomp.oracle.interpret import interpret
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
