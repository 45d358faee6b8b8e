"""Lowers te and a schedule to one function of the loop IR, at the nested level.

Before (te):    C = compute((n,), lambda i: A[i] + B[i])
After:          func add(A: f32[n], B: f32[n], C: f32[n] out) { for i in range(n) { ... } }

Requires: every placeholder that is read and at least one computed tensor are arguments.
Ensures:
- Each stage at the root is computed once, producers first.
- Each attached stage is computed in the loop that it is attached to.
- Intermediate tensors and outputs that are not arguments are allocated.
- An argument may be a placeholder that nothing reads.
- Loops bound to threads form kernels in canonical form, without barriers.
- The function requires the sizes without which a read would be out of range (see
  `required_reads`).

Refuses foreign tensors, missing arguments and unbound variables. Attachments, threads
and scopes that do not fit are refused by `bounds.infer_stages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.arith import Facts
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames, checked_name
from refcomp.foundation.provenance import declared_at
from refcomp.foundation.python_limits import deep_recursion, paused_collector
from refcomp.ir.buffer import GLOBAL, Buffer
from refcomp.ir.expr import Expr, IntImm, Let, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.lanes import expand_lanes
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    children,
    replace_buffers,
    substitute,
    variables_in,
    walk,
    with_fields,
)
from refcomp.ir.stmt import Allocate, For, LetStmt, Stmt, block
from refcomp.lowering.bounds.infer_stages import Bodies, infer_stages
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.lowering.extern import reads_of_extern
from refcomp.lowering.hints import aligned_shape, allocated, imported_texts
from refcomp.lowering.inline import inline_reads
from refcomp.lowering.loop_pragmas import check_parallel_pragmas
from refcomp.lowering.nest import LoweringContext, attached_by_axis, lower_stage
from refcomp.lowering.required_reads import required_reads
from refcomp.lowering.scan import place_scans, reads_of_scan
from refcomp.schedule.axes import Region
from refcomp.schedule.placement import placement_lines
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_graph import find_stage
from refcomp.te.check_reads import check_reads
from refcomp.te.operation import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp
from refcomp.te.tensor import Tensor

_WORKSPACE_ALIGNMENT = 64  # bytes: a cache line, and the widest vector
_MAX_QUOTED = 3  # declarations in one message


@deep_recursion()
@paused_collector()
def lower(
    schedule: Schedule,
    args: Sequence[Tensor | Var] | None = None,
    name: str = "main",
    simple_mode: bool = False,
) -> PrimFunc:
    """Return the function `name` that carries out `schedule`.

    Args:
        schedule: the stages, and the primitives that were applied to them.
        args: the parameters of the function: tensors and scalar variables. Symbolic extents are
            taken from the shapes of the tensors at each call, unless their variables are arguments.
            A placeholder that nothing reads is allowed. An output that is left out is allocated
            inside, as long as another computed tensor is an argument.
        name: the name of the function.
        simple_mode: accepted for the classic API, and ignored. The text of a function is always the
            simple one.

    Returns:
        A function of the loop IR at the nested level. `print_func` returns its text.

    Raises:
        UserError: a placeholder that is read is missing, no computed tensor is an argument, or an
            argument is foreign or given twice.

    Source: TVM, tvm.lower.

    Example::

        >>> n = rc.var("n")
        >>> A = rc.placeholder((n,), name="A")
        >>> B = rc.compute((n,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> print(rc.lower(s, [A, B], "increment"))
        func increment(A: f32[n], B: f32[n] out) {
          for i.outer in range((n + 3) // 4) {
            for i.inner in range(4) {
              if (i.outer * 4 + i.inner < n) {
                B[i.outer * 4 + i.inner] = A[i.outer * 4 + i.inner] + 1.0f32
              }
            }
          }
        }
    """
    args = checked_args(schedule, args)
    buffers = _argument_buffers(args)
    stages: list[Stage] = []  # those that are computed
    inlined: list[ComputeOp] = []
    for stage in schedule.stages:
        if stage.placement != "inline":
            if not isinstance(stage.op, PlaceholderOp):
                stages.append(stage)
        elif isinstance(stage.op, ComputeOp):
            inlined.append(stage.op)
    check_parallel_pragmas(stages)
    bodies = {stage: _bodies(stage.op, inlined) for stage in stages}
    for stage in stages:
        op = stage.op
        is_root = stage.attach_point is None
        if is_root and isinstance(op, ComputeOp) and op.waits_for_scan:
            # All rows are computed, as outside of a scan, so this check raises.
            check_reads(op.name, op.axis, bodies[stage], at=stage.declaration())
    facts = Facts()
    for buffer in buffers.values():
        for dim in buffer.shape:
            for symbol in variables_in(dim):
                facts = facts.nonnegative(symbol)
    computed = {tensor for stage in stages for tensor in stage.op.outputs}
    func = PrimFunc(
        checked_name(name, "a function"),
        params=tuple(buffers[a] if isinstance(a, Tensor) else a for a in args),
        body=_lower_stages(stages, bodies, buffers, facts),
        outputs=tuple(buffers[tensor].name for tensor in buffers if tensor in computed),
        imports=imported_texts(stages),
        requires=required_reads(stages, bodies, args),
    )
    func = expand_lanes(_with_unique_names(func))
    _check_variables(func)
    return func


def _bodies(op: Operation, inlined: Sequence[ComputeOp]) -> list[Expr]:
    """Return the expressions of `op`, without reads of inlined operations."""
    if isinstance(op, ExternOp):
        return reads_of_extern(op)
    if isinstance(op, ScanOp):
        return reads_of_scan(op)
    assert isinstance(op, ComputeOp)
    return [inline_reads(body, inlined) for body in op.body]


def _lower_stages(
    stages: Sequence[Stage],
    bodies: Bodies,
    arguments: Mapping[Tensor, Buffer],
    facts: Facts,
) -> Stmt:
    """Return the root stages in sequence, each with the stages attached to its loops."""
    bounds = infer_stages(stages, bodies, facts)
    buffers = dict(arguments)
    regions: dict[Tensor, Region] = {}
    for stage in stages:
        region = bounds[stage].region
        for tensor in stage.op.outputs:
            if tensor not in arguments:
                buffers[tensor] = _workspace(bounds[stage], tensor)
            if region is not None:
                regions[tensor] = region
    scans = place_scans(stages, bodies, arguments, buffers, regions, facts)
    attached = attached_by_axis(stages)
    context = LoweringContext(bounds, buffers, regions, scans, attached)
    roots = [stage for stage in stages if stage.attach_point is None]
    stmts: list[Stmt] = []
    for stage in roots:
        stmt = lower_stage(stage, context)
        stmts.append(scans.guarded(stage, stmt))
    body = block(stmts)

    for stage in reversed(roots):
        for tensor in reversed(stage.op.outputs):
            if tensor not in arguments and tensor not in scans.borrowed:
                body = allocated(stage, buffers[tensor], body)
    return body


def _workspace(bounds: StageBounds, tensor: Tensor) -> Buffer:
    """Return a buffer for a tensor, or for the region of it that is computed at a time."""
    stage = bounds.stage
    scope = bounds.place.scope
    shape = tensor.shape if bounds.region is None else bounds.region.extent
    if scope != GLOBAL:  # such memory has a size even if nothing is computed
        dims: list[Expr] = []
        for dim in shape:
            is_empty = isinstance(dim, IntImm) and dim.value < 1
            dims.append(IntImm(1, I64) if is_empty else dim)
        shape = tuple(dims)
    shape = aligned_shape(stage, shape)
    name = stage.name + tensor.name.removeprefix(stage.op.name)
    return Buffer(name, tensor.dtype, shape, scope, _WORKSPACE_ALIGNMENT)


def _argument_buffers(args: Sequence[Tensor | Var]) -> dict[Tensor, Buffer]:
    """Return a buffer for each tensor argument, named like the tensor if possible."""
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    scalars = [arg.name for arg in args if isinstance(arg, Var)]
    dims = (dim for tensor in tensors for dim in tensor.shape)
    symbols = (var.name for dim in dims for var in variables_in(dim))
    names = UniqueNames((*scalars, *symbols), separator=".")
    return {t: Buffer(names.take(t.name), t.dtype, t.shape) for t in tensors}


def _with_unique_names(func: PrimFunc) -> PrimFunc:
    """Return `func` with each scalar or symbol renamed if its name is taken."""
    names = UniqueNames((buffer.name for buffer in func.buffers), separator=".")
    renamed: dict[Var, Expr] = {}
    scalars = [param for param in func.params if isinstance(param, Var)]
    for var in (*scalars, *func.symbols):
        name = names.take(var.name)
        if name != var.name:
            renamed[var] = Var(name, var.dtype)
    if not renamed:
        return func
    # Shapes are part of the buffers, not children of their accesses.
    allocated = [item.buffer for item in walk(func.body) if isinstance(item, Allocate)]
    buffers: dict[Buffer, Buffer] = {}
    for buffer in (*func.buffers, *allocated):
        shape = tuple(substitute(dim, renamed) for dim in buffer.shape)
        buffers[buffer] = with_fields(buffer, shape=shape)
    params = tuple(
        buffers[param] if isinstance(param, Buffer) else renamed.get(param, param)
        for param in func.params
    )
    body = replace_buffers(substitute(func.body, renamed), buffers)
    requires = tuple(substitute(condition, renamed) for condition in func.requires)
    return with_fields(func, params=params, body=body, requires=requires)


def checked_args(
    schedule: Schedule, args: Sequence[Tensor | Var] | None
) -> Sequence[Tensor | Var]:
    """Return `args`.

    Raises:
        UserError: `args` are not the arguments of a function for `schedule`.
    """
    if not isinstance(schedule, Schedule):
        raise UserError(
            f"{schedule!r} is not a schedule", remedy="pass create_schedule(C.op)"
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
    makers = {tensor: s for s in schedule.stages for tensor in s.op.outputs}
    seen: set[int] = set()
    for number, arg in enumerate(args):
        if not isinstance(arg, Tensor | Var):
            raise UserError(
                f"argument {number} is a {type(arg).__name__}",
                remedy="pass tensors and scalar variables",
            )
        if id(arg) in seen:
            raise UserError(
                f"argument {arg.name} is given twice", remedy="list it once"
            )
        seen.add(id(arg))
        if isinstance(arg, Tensor) and not _is_unread(schedule, arg):
            _check_tensor(makers.get(arg) or schedule.stage_of(arg), arg)
    _check_nothing_missing(schedule, args)
    return args


def _is_unread(schedule: Schedule, tensor: Tensor) -> bool:
    """Return True for a placeholder that no stage of the schedule reads."""
    is_given = isinstance(tensor.op, PlaceholderOp)
    return is_given and find_stage(schedule.stages, tensor) is None


def argument_notes(schedule: Schedule, args: Sequence[Tensor | Var]) -> tuple[str, ...]:
    """Return a sentence for each argument that nothing reads, and each output left out.

    Args:
        schedule: the stages.
        args: the arguments, as `checked_args` allows them.
    """
    notes: list[str] = []
    for arg in args:
        if isinstance(arg, Tensor) and _is_unread(schedule, arg):
            notes.append(f"nothing reads argument {arg.name}")
    for op in schedule.outputs:
        if isinstance(op, PlaceholderOp):
            continue
        for tensor in op.outputs:
            if all(tensor is not arg for arg in args):
                notes.append(
                    f"output {tensor.name} is not an argument: its memory is inside, "
                    "and no caller sees it"
                )
    return tuple(notes)


def _check_tensor(stage: Stage, tensor: Tensor) -> None:
    """Refuse an argument that does not lie in the caller's memory as a whole."""
    point = stage.attach_point
    scope = stage.memory.scope
    if point is not None or scope not in (None, GLOBAL):
        how = f"{scope} memory"
        if point is not None:
            how = f"a loop of stage {point.stage.name}"
        raise UserError(
            f"tensor {tensor.name} is an argument, but its stage is computed in {how}",
            why="all of an argument is computed, and in the caller's memory",
            remedy="leave it out of the arguments, "
            "or compute it at the root in global memory",
            earlier=[*placement_lines(stage), declared_at(stage.op.line, tensor.name)],
        )
    if stage.placement == "inline":
        raise UserError(
            f"tensor {tensor.name} is an argument, but its stage is inlined",
            why="an inlined stage has no memory",
            remedy="leave it out of the arguments, or do not inline it",
            earlier=[declared_at(stage.op.line, tensor.name)],
        )


def _check_nothing_missing(schedule: Schedule, args: Sequence[Tensor | Var]) -> None:
    given = {arg for arg in args if isinstance(arg, Tensor)}
    for stage in schedule.stages:
        if isinstance(stage.op, ScanOp):
            given.update(stage.op.state)  # a state lies in the scan's result
    missing: list[Tensor] = []
    computed: list[Tensor] = []
    for stage in schedule.stages:
        if isinstance(stage.op, PlaceholderOp):
            missing += [tensor for tensor in stage.op.outputs if tensor not in given]
        else:
            computed += stage.op.outputs
    if computed and given.isdisjoint(computed):
        # Without a result, the function would do nothing.
        missing += [tensor for op in schedule.outputs for tensor in op.outputs]
    if missing:
        quoted = missing[:_MAX_QUOTED]
        raise UserError(
            f"the arguments lack {', '.join(tensor.name for tensor in missing)}",
            why="every placeholder that is read, and at least one result, needs memory from the "
            "caller",
            remedy="add them to the list of arguments",
            earlier=[declared_at(tensor.op.line, tensor.name) for tensor in quoted],
        )


def _check_variables(func: PrimFunc) -> None:
    """Refuse scalar variables that nothing binds, and loop variables outside of their loops."""
    bound = {*func.symbols}
    bound.update(param for param in func.params if isinstance(param, Var))
    bound.update(n.var for n in walk(func.body) if isinstance(n, Let | LetStmt))
    free: dict[str, None] = {}
    seen: set[int] = set()
    # Nodes to visit. Before the body of a loop stands its variable, whose scope ends there.
    stack: list[Node | tuple[Var]] = [func.body]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            bound.discard(node[0])
            seen.clear()  # what was seen may use the variable
        elif isinstance(node, Var):
            if node not in bound:
                free[node.name] = None
        elif id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, For):
                bound.add(node.var)
                stack.append((node.var,))
            stack += children(node)
    if free:
        raise UserError(
            f"the computation uses {', '.join(free)}, which nothing gives a value",
            why="an axis has values in its own compute only, not in one that it reads",
            remedy="add scalar variables to the list of arguments; "
            "reduce over reduction axes",
        )
