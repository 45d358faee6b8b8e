"""PrimFunc, a function of the loop IR, and Program, a host function with its kernels.

Grammar::

    func = PrimFunc(str name, param* params, stmt body, str* outputs, str* imports,
                    requirement* requires, str* checks)
    param = Var | Buffer
    requirement = Requirement(expr condition, var* axes, expr* minima, expr* extents)
"""

from __future__ import annotations

from refcomp.foundation.artifacts import STATUS_WORDS, checked_access_from_text
from refcomp.foundation.dtype import I64
from refcomp.foundation.records import record
from refcomp.ir.buffer import Buffer
from refcomp.ir.constants import as_ints
from refcomp.ir.expr import Cast, Expr, Var
from refcomp.ir.node import Node, node
from refcomp.ir.rewrite import variables_in, with_fields
from refcomp.ir.stmt import Stmt


@record
class RequirementOrigin:
    """The reason of a Requirement, as texts: they stay valid when the function is rewritten."""

    text: str  # the access as the user wrote it (`A[i + 1]`), or the axis of an extent
    by: str  # the stage that needs it, and how: `compute C reads`; '' if unknown
    line: str = ""  # the user's source line, as file:line
    buffer: str = ""  # the buffer that is accessed; '' if an extent is the reason
    dim: int = 0  # the dimension of the buffer that the condition limits
    advice: str = ""  # how to guard the access, if that is not obvious
    failure: str = ""  # what a failed assert says; '' if no assert is the reason


@node
class Requirement(Node):
    """A condition that each call of the function must meet; other calls are refused.

    With axes, it must hold at all their values: `for i in range(m) i % 8 < n`.
    """

    binds = ("axes",)
    binds_in = ("minima", "extents", "condition")
    condition: Expr  # a bool of symbols, scalar parameters and axes, without loads
    origin: RequirementOrigin | None = None
    axes: tuple[Var, ...] = ()
    # The first value of each axis, and how many it has. They may depend on earlier axes.
    minima: tuple[Expr, ...] = ()
    extents: tuple[Expr, ...] = ()


class _Referenced(Node):
    """A node to which there can be weak references, so that analyses can remember its results."""

    __slots__ = ("__weakref__",)


@node
class PrimFunc(_Referenced):
    """A function that runs `body` on its arguments: scalars, and buffers that do not overlap.

    Variables in the shapes of buffers that are not parameters are the *symbols*. They are solved
    from the shapes of the arguments, and each is >= 0.

    With `checks`, the last parameter is the array to which the body writes the indices of wrong
    accesses (`refcomp.passes.check_accesses`).
    """

    binds = ("params", "symbols")
    binds_in = ("requires", "body")
    names_bound = ("outputs",)
    name: str
    params: tuple[Var | Buffer, ...]
    body: Stmt
    # Names of the buffers that are written.
    outputs: tuple[str, ...] = ()
    # LLVM IR that defines C functions which the body calls.
    imports: tuple[str, ...] = ()
    # Conditions that are checked before the body runs.
    requires: tuple[Requirement, ...] = ()
    # Accesses that the body checks, each as the text of a foundation.artifacts.CheckedAccess.
    checks: tuple[str, ...] = ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Return the buffer parameters in order."""
        return tuple(p for p in self.params if isinstance(p, Buffer))

    @property
    def symbols(self) -> tuple[Var, ...]:
        """Return the shape variables that are not parameters, in order of first appearance."""
        found: dict[Var, None] = {}
        for buffer in self.buffers:
            for dim in buffer.shape:
                found.update(dict.fromkeys(variables_in(dim)))
        # A set, since `var in self.params` would build a comparison with each parameter.
        params = set(self.params)
        return tuple(var for var in found if var not in params)

    def with_body(self, body: Stmt) -> PrimFunc:
        """Return this function with another body; itself if the body is the same object."""
        return self if body is self.body else with_fields(self, body=body)


def checks_fault(func: PrimFunc) -> str | None:
    """Describe what is wrong with the checks of `func` or their parameter; None if nothing is."""
    if not func.checks:
        return None
    try:
        for text in func.checks:
            checked_access_from_text(text)
    except ValueError as error:
        return str(error)
    wanted = [len(func.checks), STATUS_WORDS]
    match func.params:
        case [*_, Buffer() as status]:
            is_output = status.dtype == I64 and status.name in func.outputs
            if is_output and as_ints(status.shape) == wanted:
                return None
    return f"a function with {len(func.checks)} checks takes an i64{wanted} out last"


@record(eq=False)
class Program:
    """A function that runs on the host, and the kernels that its LaunchKernel statements name."""

    host: PrimFunc
    # The parameters of a kernel are all that it uses, buffers first. It has no symbols.
    kernels: tuple[PrimFunc, ...]

    def kernel(self, name: str) -> PrimFunc:
        """Return the kernel of that name. Raises KeyError if there is none."""
        kernels = {kernel.name: kernel for kernel in self.kernels}
        return kernels[name]


def symbol_of(dim: Expr) -> Var | None:
    """Return the variable of a dimension that is `n` or `i64(n)`; None for any other."""
    inner = dim.value if isinstance(dim, Cast) else dim
    return inner if isinstance(inner, Var) else None
