"""A function of the loop IR, and a Program of several.

Grammar::

    func = PrimFunc(str name, param* params, stmt body, str* outputs, str* imports,
                    requirement* requires, str* checks)
    param = Var | Buffer
    requirement = Requirement(expr condition)
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.foundation.artifacts import STATUS_WORDS, checked_access_from_text
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import Buffer
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Cast, Expr, Var
from refcomp.ir.node import Node, node
from refcomp.ir.rewrite import variables_in, with_fields
from refcomp.ir.stmt import Stmt


@dataclass(frozen=True, slots=True)
class RequirementOrigin:
    """The reason of a Requirement, in words that stay when the function is rewritten."""

    text: str  # the access as the user wrote it (`A[i + 1]`), or the axis of an extent
    by: str  # who needs it, and how: `compute C reads`; '' where nobody knows
    line: str = ""  # the user's source line, as file:line
    buffer: str = ""  # the buffer that is accessed; none where an extent is meant
    dim: int = 0  # the buffer's dimension that the condition speaks of
    advice: str = ""  # how to access it under a condition, where that is not plain


@node
class Requirement(Node):
    """`condition`, a bool over symbols and scalar parameters, holds when the function is called.

    It reads no memory and calls nothing. A call that breaks it is refused.
    """

    condition: Expr
    origin: RequirementOrigin | None = None


@node
class PrimFunc(Node):
    """Runs `body` on its arguments: buffers by reference, which may not overlap, and scalars.

    Variables in the shapes of buffer parameters that are no parameters themselves (the symbols) are
    solved from the arguments' shapes; each is >= 0. `outputs` names the buffers that are written.
    `imports` are texts of LLVM IR that define C functions which the body calls. `requires` holds at
    each call; it is checked before anything is run. `checks` are the accesses that the body checks
    (texts of `refcomp.foundation.artifacts.CheckedAccess`); the last parameter is then the array in
    which it notes wrong indices (`refcomp.passes.check_accesses`).
    """

    binds = ("params", "symbols")
    binds_in = ("requires", "body")
    names_bound = ("outputs",)
    name: str
    params: tuple[Var | Buffer, ...]
    body: Stmt
    outputs: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    requires: tuple[Requirement, ...] = ()
    checks: tuple[str, ...] = ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffer parameters in order."""
        return tuple(p for p in self.params if isinstance(p, Buffer))

    @property
    def symbols(self) -> tuple[Var, ...]:
        """Shape variables that are no parameters, in order of first appearance."""
        found: dict[Var, None] = {}
        for buffer in self.buffers:
            for dim in buffer.shape:
                found.update(dict.fromkeys(variables_in(dim)))
        # A set, as `var in self.params` would build a comparison of each param with the variable.
        params = set(self.params)
        return tuple(var for var in found if var not in params)

    def with_body(self, body: Stmt) -> PrimFunc:
        """This function with another body; itself when the body is the same object."""
        return self if body is self.body else with_fields(self, body=body)


def checks_fault(func: PrimFunc) -> str | None:
    """Return what is wrong with the checks of `func`, or with the parameter for their status."""
    if not func.checks:
        return None
    try:
        for text in func.checks:
            checked_access_from_text(text)
    except ValueError as error:
        return str(error)
    status = func.params[-1] if func.params else None
    wanted = len(func.checks), STATUS_WORDS
    if (
        isinstance(status, Buffer)
        and status.dtype == I64
        and status.name in func.outputs
    ):
        shape = tuple(as_int(dim) for dim in status.shape)
        if shape == wanted:
            return None
    return (
        f"a function with {len(func.checks)} checks takes an i64{list(wanted)} out last"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A function of the host's, and the kernels that its LaunchKernel statements name.

    The parameters of a kernel are all that it uses, buffers first; it has no symbols.
    """

    host: PrimFunc
    kernels: tuple[PrimFunc, ...]

    def kernel(self, name: str) -> PrimFunc:
        """The kernel of that name; KeyError when there is none."""
        return {kernel.name: kernel for kernel in self.kernels}[name]


def symbol_of(dim: Expr) -> Var | None:
    """The variable that a dimension names directly (`n`, or `i64(n)`), else None."""
    inner = dim.value if isinstance(dim, Cast) else dim
    return inner if isinstance(inner, Var) else None
