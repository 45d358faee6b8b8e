"""The door of the compiler: a module for a schedule, from the cache or from the compiler.

It imports the compiler only if the module is not in the cache, so that a program whose modules are
there starts quickly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from refcomp.driver.build_cache import recall_module
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import (
    Target,
    as_target,
    target_or_current,
    with_host,
)
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.runtime.module import Module
from refcomp.schedule.identity import schedule_identity
from refcomp.schedule.schedule import Schedule
from refcomp.te.tensor import Tensor

if TYPE_CHECKING:
    from refcomp.compiler import Scheduled


def build(
    inputs: Schedule
    | PrimFunc
    | Sequence[PrimFunc | Scheduled]
    | Mapping[Target | str, Sequence[PrimFunc | Scheduled]],
    args: Sequence[Tensor | Var] | None = None,
    target: Target | str | None = None,
    target_host: Target | str | None = None,
    name: str = "main",
) -> Module:
    """Compile a schedule, or functions of the loop IR, to a module that can be called.

    The arguments of a call are numpy arrays, NDArrays and numbers. Outputs are arguments, too, and
    are written in place. With the build option `certify`, a build whose result is wrong on small
    sizes is refused.

    Args:
        inputs: the schedule; or the function, which brings its own name and parameters; or a list
            of functions and of tuples `(schedule, args, name)` for one module; or a dictionary,
            target -> such a list. A module of several targets cannot be saved as a module file.
        args: the tensors and scalar variables of a schedule, in calling order.
        target: what to compile for, such as `"llvm -mcpu=native"`, `"opencl"` or `"rocm"`. The
            target `"interp"` runs the loop IR by the interpreter and needs no tool. By default
            it is the current target (`with refcomp.Target(...)`), or else `"llvm"`.
        target_host: what the host's part is compiled for, `"llvm"`. It is accepted for the sake of
            classic programs: the host's part of a device program is walked by Python. Its option
            `-system-lib` is that of the target.
        name: name of the function that a schedule becomes.

    Returns:
        A module. `module(a, b)` calls the function, and `module.get_source("llvm")` is its text.

    Raises:
        UserError: `inputs` cannot be built, or a name is unknown.
        Unsupported: the target cannot express the computation.
        ToolchainError: a tool is missing or fails.

    Source: TVM, tvm.build.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> increment = rc.build(rc.create_schedule(B), [A, B], name="increment")
        >>> b = np.empty(4, "float32")
        >>> increment(np.arange(4, dtype="float32"), b)
        >>> print(b)
        [1. 2. 3. 4.]
    """
    if isinstance(inputs, Mapping):
        return _build_for_targets(inputs, target, target_host)
    chosen = with_host(target_or_current(target), target_host)
    if not isinstance(inputs, Schedule):
        from refcomp.compiler import build_functions  # noqa: PLC0415  (as below)

        is_list = isinstance(inputs, Sequence) and not isinstance(inputs, str)
        listed = inputs if is_list else [inputs]
        if isinstance(inputs, tuple) and inputs and isinstance(inputs[0], Schedule):
            raise UserError(
                "a tuple of a schedule, arguments and a name is one function of a list",
                remedy="pass a list of such tuples: [(schedule, args, name)]",
            )
        return build_functions(cast("Sequence[PrimFunc | Scheduled]", listed), chosen)
    if args is None:
        raise UserError(
            "a schedule is built without arguments", remedy="pass args=[A, B, C]"
        )

    def make() -> Module:
        # Here, since a module from the cache needs neither passes nor printers.
        from refcomp.compiler import build_schedule  # noqa: PLC0415

        return build_schedule(inputs, args, name, chosen)

    return recall_module(_description(inputs, args, name), chosen, make)


def _build_for_targets(
    functions: Mapping[Target | str, Sequence[PrimFunc | Scheduled]],
    target: Target | str | None,
    target_host: Target | str | None,
) -> Module:
    """Return one module of functions for several targets. Each runs where its target does."""
    from refcomp.compiler import build_functions  # noqa: PLC0415  (as in `build`)
    from refcomp.runtime.joined_module import joined  # noqa: PLC0415  (rare)

    if target is not None:
        raise UserError(
            f"functions are given for targets of their own, and for the target {target}",
            remedy="leave target= away, or pass a list of functions",
        )
    if not functions:
        raise UserError(
            "the dictionary of functions to build is empty",
            remedy='pass {"llvm": [f], "opencl": [g]}',
        )
    modules = [
        build_functions(listed, with_host(as_target(key), target_host))
        for key, listed in functions.items()
    ]
    return modules[0] if len(modules) == 1 else joined(modules)


def _description(
    schedule: Schedule, args: Sequence[Tensor | Var], name: str
) -> tuple[str, ...] | None:
    """Return an identity of the loop IR of a schedule; None if the schedule has none.

    Equal identities mean equal loop IR.
    """
    if not isinstance(args, list | tuple) or not isinstance(name, str):
        return None  # refused by `lower`
    # Lines of the user's program reach the messages of wrong calls.
    identity = schedule_identity(schedule, args, with_lines=True)
    return None if identity is None else ("schedule", identity, name)
