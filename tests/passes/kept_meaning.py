"""Whether a pass keeps what functions compute, by the interpreter."""

from collections.abc import Callable, Mapping

from refcomp.codegen.signature import signature_of
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_func
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds
from tests.strategies.funcs import assert_same_values, make_arguments


def assert_meaning_is_kept(
    function: Callable[[PrimFunc], PrimFunc],
    func: PrimFunc,
    symbols: Mapping[Var, int],
    level: str,
) -> None:
    """`function(func)` is legal at `level` and leaves the same values in the same arguments; a
    function that checks its accesses finds none out of bounds."""
    after = function(func)
    verify(after, level)
    arguments, others = make_arguments(func, symbols), make_arguments(func, symbols)
    signature = signature_of(after)
    status = fresh_status(signature)
    interpret(func, arguments)
    interpret(after, [*others, status] if signature.checks else others)
    require_in_bounds(signature, status)
    message = f"{print_func(func)}\nbecame\n{print_func(after)}"
    assert_same_values(arguments, others, message)
