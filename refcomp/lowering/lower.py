"""te and a schedule become one function of the loop IR, at the nested level.

Before (te):    C = compute((n,), lambda i: A[i] + B[i])
After:          func add(A: f32[n], B: f32[n], C: f32[n] out) { for i in range(n) { ... } }

Needs every placeholder and every output of the schedule among the arguments. Ensures that each
stage at the root is computed once, producers first, each attached stage in the loop it is attached
to, that intermediate tensors which are no arguments are allocated, and that loops bound to threads
make kernels in canonical form, without barriers, and that the function requires the sizes without
which a stage would read what is not there (`required_reads`). Refuses foreign tensors, missing
arguments, unbound variables, and attachments, threads and scopes that do not fit
(`schedule.infer_stages`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.arith import Facts
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames, checked_name
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import (
    replace_buffers,
    substitute,
    variables_in,
    walk,
    with_fields,
)
from refcomp.ir.stmt import Allocate, For, LetStmt, Stmt, block
from refcomp.lowering.bounds.infer_stages import infer_stages
from refcomp.lowering.bounds.kernels import GLOBAL
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.lowering.extern import reads_of_extern
from refcomp.lowering.hints import aligned_shape, allocated, imported_texts
from refcomp.lowering.inline import inline_reads
from refcomp.lowering.nest import Nests, attached_by_axis, lower_stage
from refcomp.lowering.required_reads import required_reads
from refcomp.lowering.scan import Bodies, place_scans, reads_of_scan
from refcomp.schedule.axes import Region
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.te.extern import ExternOp
from refcomp.te.operation import ComputeOp, PlaceholderOp
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import Tensor

_WORKSPACE_ALIGNMENT = 64  # bytes: a cache line, and the widest vector


@deep_recursion()
def lower(
    schedule: Schedule,
    args: Sequence[Tensor | Var] | None = None,
    name: str = "main",
    simple_mode: bool = False,
) -> PrimFunc:
    """The function `name` that carries out `schedule` on `args`, tensors and scalar variables.
    `simple_mode` is that of the classic API; the text of a function is the simple one either way.

    Symbolic extents are read off the tensors' shapes at the call, unless their variables are
    among `args`. Raises UserError when an argument is missing, foreign or given twice.
    """
    args = checked_args(schedule, args)
    buffers = _argument_buffers(args)
    stages = _computed_stages(schedule)
    bodies = _bodies_of(schedule, stages)
    body = _lower_stages(stages, bodies, buffers, _shape_facts(args))
    requires = required_reads(stages, bodies, args)
    computed = {tensor for stage in stages for tensor in stage.op.outputs}
    outputs = tuple(
        buffer.name for tensor, buffer in buffers.items() if tensor in computed
    )
    params = tuple(buffers[arg] if isinstance(arg, Tensor) else arg for arg in args)
    called = checked_name(name, "a function")
    imports = imported_texts(stages)
    func = _with_unique_names(
        PrimFunc(called, params, body, outputs, imports, requires)
    )
    _check_variables(func)
    return func


def _computed_stages(schedule: Schedule) -> list[Stage]:
    placed = [s for s in schedule.stages if s.placement != "inline"]
    return [s for s in placed if not isinstance(s.op, PlaceholderOp)]


def _shape_facts(args: Sequence[Tensor | Var]) -> Facts:
    facts = Facts()
    for arg in args:
        for dim in arg.shape if isinstance(arg, Tensor) else ():
            for variable in variables_in(dim):
                facts = facts.nonnegative(variable)
    return facts


def _bodies_of(schedule: Schedule, stages: Sequence[Stage]) -> Bodies:
    """The expressions of `stages`, in which those of inlined stages stand."""
    inlined = [
        s.op
        for s in schedule.stages
        if s.placement == "inline" and isinstance(s.op, ComputeOp)
    ]
    return {stage: _inlined_bodies(stage, inlined) for stage in stages}


def _lower_stages(
    stages: Sequence[Stage],
    bodies: Bodies,
    arguments: Mapping[Tensor, Buffer],
    facts: Facts,
) -> Stmt:
    """The stages at the root one after the other, each with what is attached to its loops."""
    bounds = infer_stages(stages, bodies, facts)
    buffers, regions = dict(arguments), dict[Tensor, Region]()
    for stage in stages:
        region = bounds[stage].region
        for tensor in stage.op.outputs:
            if tensor not in arguments:
                buffers[tensor] = _workspace(bounds[stage], tensor)
            if region is not None:
                regions[tensor] = region
    scans = place_scans(stages, bodies, arguments, buffers, regions, facts)
    nests = Nests(bounds, buffers, regions, scans, attached_by_axis(stages))
    roots = [stage for stage in stages if stage.attach_point is None]
    body = block([scans.guarded(stage, lower_stage(stage, nests)) for stage in roots])
    made = [(stage, tensor) for stage in roots for tensor in stage.op.outputs]
    for stage, tensor in reversed(made):
        if tensor not in arguments and tensor not in scans.borrowed:
            body = allocated(stage, buffers[tensor], body)
    return body


def _workspace(bounds: StageBounds, tensor: Tensor) -> Buffer:
    """Memory for a tensor, or for the region that is computed of it at a time."""
    stage, scope = bounds.stage, bounds.place.scope
    shape = tensor.shape if bounds.region is None else bounds.region.extent
    if scope != GLOBAL:  # it has a size even where nothing is computed
        shape = tuple(_at_least_one(dim) for dim in shape)
    shape = aligned_shape(stage, shape)
    name = stage.name + tensor.name.removeprefix(stage.op.name)
    return Buffer(name, tensor.dtype, shape, scope, _WORKSPACE_ALIGNMENT)


def _at_least_one(dim: Expr) -> Expr:
    return IntImm(1, I64) if isinstance(dim, IntImm) and dim.value < 1 else dim


def _inlined_bodies(stage: Stage, inlined: Sequence[ComputeOp]) -> list[Expr]:
    op = stage.op
    if isinstance(op, ExternOp):
        return reads_of_extern(op)
    if isinstance(op, ScanOp):
        return reads_of_scan(op)
    assert isinstance(op, ComputeOp)
    return [inline_reads(body, inlined) for body in op.body]


def _argument_buffers(args: Sequence[Tensor | Var]) -> dict[Tensor, Buffer]:
    """A buffer for each tensor argument, under its own name where nothing else has it."""
    buffers: dict[Tensor, Buffer] = {}
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    symbols = (
        var for tensor in tensors for dim in tensor.shape for var in variables_in(dim)
    )
    scalars = (arg for arg in args if isinstance(arg, Var))
    names = UniqueNames((var.name for var in (*scalars, *symbols)), separator=".")
    for tensor in tensors:
        buffers[tensor] = Buffer(names.take(tensor.name), tensor.dtype, tensor.shape)
    return buffers


def _with_unique_names(func: PrimFunc) -> PrimFunc:
    """`func` with other names for scalars and symbols whose names an earlier one has."""
    names = UniqueNames((buffer.name for buffer in func.buffers), separator=".")
    fresh: dict[Var, Expr] = {}
    for var in (*(p for p in func.params if isinstance(p, Var)), *func.symbols):
        name = names.take(var.name)
        if name != var.name:
            fresh[var] = Var(name, var.dtype)
    if not fresh:
        return func
    allocated = [item.buffer for item in walk(func.body) if isinstance(item, Allocate)]
    buffers = {
        buffer: with_fields(
            buffer, shape=tuple(substitute(dim, fresh) for dim in buffer.shape)
        )
        for buffer in (*func.buffers, *allocated)
    }
    params = tuple(
        buffers[param] if isinstance(param, Buffer) else fresh.get(param, param)
        for param in func.params
    )
    body = replace_buffers(substitute(func.body, fresh), buffers)
    requires = tuple(substitute(requirement, fresh) for requirement in func.requires)
    return with_fields(func, params=params, body=body, requires=requires)


def checked_args(
    schedule: Schedule, args: Sequence[Tensor | Var] | None
) -> Sequence[Tensor | Var]:
    """Return `args`; UserError where they are not the arguments of `schedule`."""
    if not isinstance(schedule, Schedule):
        raise UserError(
            f"{schedule!r} is no schedule", remedy="pass create_schedule(C.op)"
        )
    if args is None:
        raise UserError(
            "a schedule is lowered without arguments", remedy="pass args=[A, B, C]"
        )
    if not isinstance(args, list | tuple):
        raise UserError(
            f"the arguments are {args!r}, not a list",
            remedy="pass a list such as [A, B, C]",
        )
    makers = {tensor: stage for stage in schedule.stages for tensor in stage.op.outputs}
    seen: set[int] = set()
    for k, arg in enumerate(args):
        if not isinstance(arg, Tensor | Var):
            raise UserError(
                f"argument {k} is a {type(arg).__name__}",
                remedy="pass tensors and scalar variables",
            )
        if id(arg) in seen:
            raise UserError(
                f"argument {arg.name} is given twice", remedy="list it once"
            )
        seen.add(id(arg))
        if isinstance(arg, Tensor):
            _check_tensor(makers.get(arg) or schedule.stage_of(arg), arg)
    _check_nothing_missing(schedule, args)
    return args


def _check_tensor(stage: Stage, tensor: Tensor) -> None:
    point = stage.attach_point
    scope = stage.memory.scope
    if point is not None or scope not in (None, GLOBAL):
        how = (
            f"{scope} memory"
            if point is None
            else f"a loop of stage {point.stage.name}"
        )
        raise UserError(
            f"tensor {tensor.name} is an argument, but its stage is computed in {how}",
            why="all of an argument is computed, and in the caller's memory",
            remedy="leave it out of the arguments, or compute it at the root in global memory",
        )
    if stage.placement == "inline":
        raise UserError(
            f"tensor {tensor.name} is an argument, but its stage is inlined",
            why="an inlined stage has no memory",
            remedy="leave it out of the arguments, or do not inline it",
        )


def _check_nothing_missing(schedule: Schedule, args: Sequence[Tensor | Var]) -> None:
    given = {arg for arg in args if isinstance(arg, Tensor)}
    scans = (stage.op for stage in schedule.stages if isinstance(stage.op, ScanOp))
    given.update(
        tensor for op in scans for tensor in op.state
    )  # it lies in the scan's result
    needed = [
        tensor
        for stage in schedule.stages
        if stage.is_output or isinstance(stage.op, PlaceholderOp)
        for tensor in stage.op.outputs
    ]
    missing = [tensor.name for tensor in needed if tensor not in given]
    if missing:
        raise UserError(
            f"the arguments lack {', '.join(missing)}",
            why="every placeholder and every output needs memory from the caller",
            remedy="add them to the list of arguments",
        )


def _check_variables(func: PrimFunc) -> None:
    """Refuses scalar variables that nothing binds."""
    bound: set[Var] = {param for param in func.params if isinstance(param, Var)}
    bound.update(func.symbols)
    for node in walk(func.body):
        if isinstance(node, For | LetStmt):
            bound.add(node.var)
    free = [
        variable.name for variable in variables_in(func.body) if variable not in bound
    ]
    if free:
        raise UserError(
            f"the computation uses {', '.join(free)}, which nothing gives a value",
            remedy="add scalar variables to the list of arguments; reduce over reduction axes",
        )
