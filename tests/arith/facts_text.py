"""Facts and expressions from short texts, so that tests read as tables.

`Scope("n, m; i in 16; j in n // 4; k in 2..n; x: i32; i < n")` declares shape symbols `n, m`, loops
`i` in [0, 16), `j` in [0, n // 4), `k` in [2, n), a variable `x` of which nothing is known, and
assumes a condition, in this order.
"""

import re

from refcomp.arith import Facts, simplify
from refcomp.arith.prove import prove
from refcomp.foundation.dtype import I64, as_dtype
from refcomp.ir.expr import Expr, IntImm, Sub, Var
from refcomp.ir.parser import parse_expr
from refcomp.ir.printer import print_expr

_NAMES = re.compile(r"[\w., ]+$")
_LOOP = re.compile(r"(?P<var>[\w.]+)(: (?P<dtype>\w+))? in ((?P<low>.+)\.\.)?(?P<high>.+)$")
_FREE = re.compile(r"(?P<var>[\w.]+): (?P<dtype>\w+)$")


class Scope:
    """Variables by name, and what is known of them."""

    def __init__(self, text: str = "") -> None:
        self.vars: dict[str, Var] = {}
        self.facts = Facts()
        for part in filter(None, map(str.strip, text.split(";"))):
            self._declare(part)

    def expr(self, text: str) -> Expr:
        """The expression of a text, over the variables declared."""
        return parse_expr(text, self.vars)

    def simplified(self, text: str) -> str:
        """The text of the simplified expression of a text."""
        return print_expr(simplify(self.expr(text), self.facts))

    def proves(self, text: str) -> bool:
        """Whether the condition of a text is proved."""
        return prove(self.expr(text), self.facts)

    def _declare(self, part: str) -> None:
        if loop := _LOOP.match(part):
            var = self._var(loop["var"], loop["dtype"])
            low = self.expr(loop["low"]) if loop["low"] else IntImm(0, var.dtype)
            high = self.expr(loop["high"])
            extent = Sub(high, low) if loop["low"] else high
            self.facts = self.facts.bind(var, low, extent)
        elif free := _FREE.match(part):
            self._var(free["var"], free["dtype"])
        elif _NAMES.match(part):
            for name in part.split(","):
                self.facts = self.facts.nonnegative(self._var(name.strip(), None))
        else:
            self.facts = self.facts.assume(self.expr(part))

    def _var(self, name: str, dtype: str | None) -> Var:
        self.vars[name] = Var(name, as_dtype(dtype) if dtype else I64)
        return self.vars[name]
