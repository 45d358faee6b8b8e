"""Facts about integers: intervals, remainders, sums, simplification and proofs.

Reading order: interval, modular, intern, linear, bounds, sign, constants, simplify/, facts, prove,
solve. Then guards, enumerated, ends and attained, which judge the indices of an access,
and alignment.
The functions below hide the modules of their names: import a module's contents by its full path.
"""

from refcomp.arith.facts import Facts
from refcomp.arith.interval import Interval
from refcomp.arith.modular import Modular
from refcomp.arith.prove import interval, modular, prove, simplify

__all__ = ["Facts", "Interval", "Modular", "interval", "modular", "prove", "simplify"]
