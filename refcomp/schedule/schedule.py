"""Schedule: how a computation is carried out, as the list of primitives that were called.

A schedule is data: the dataflow graph of its outputs, and `steps`. Each step holds its arguments by
name, and the user's line. `replay` builds a schedule again, up to any step.

`s[T]` finds the stage of tensor T. cache_read, cache_write and rfactor replace the operation of a
stage. The new operation makes the same tensors over the same axes (see
`refcomp.schedule.stage_graph`), so T, T.op and T.op.axis keep their meaning. If cache_write or
rfactor moves a reduction to another stage, its axes belong to that stage, and
`s[T].op.reduce_axis` is what T reduces over afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Concatenate, TypeVar, cast, overload

from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.names import UniqueNames
from refcomp.foundation.near_misses import advise
from refcomp.foundation.provenance import caller_line
from refcomp.foundation.snippets import Snippet
from refcomp.schedule.scan_body import attach_bodies
from refcomp.schedule.stage import MARKING_PRIMITIVES, Provenance, Stage
from refcomp.schedule.stage_graph import find_stage
from refcomp.schedule.stage_schedule import StageGroup, StageSchedule
from refcomp.schedule.stage_view import P, R
from refcomp.schedule.step import Step, resolve, to_name
from refcomp.te.hybrid_operation import HybridOp
from refcomp.te.operation import Operation, reachable_operations
from refcomp.te.tensor import IterVar, Tensor

T = TypeVar("T")
CREATE_GROUP = "create_group"


class Schedule:
    """The stages of a computation, and the primitives that were applied to them.

    `create_schedule` makes a schedule, and `s[T]` is the stage of tensor T with its primitives.
    `s[T]` also has the attributes of `refcomp.schedule.stage_view`, for reading.

    Attributes:
        outputs: the operations to compute.
        stages: the stages, producers first.
        steps: the primitives that were called, oldest first.
        groups: the groups that `create_group` made, oldest first.
        stage_map: operation -> `s[operation]`, for the present and the original operations.

    Args:
        outputs: the operations to compute. What they need is part of the schedule.

    Raises:
        UserError: `outputs` is empty, or holds something else than operations and tensors.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
        >>> C = rc.compute((8,), lambda i: B[i] * 2.0, name="C")
        >>> s = rc.create_schedule(C)
        >>> s[B].compute_inline()
        >>> [stage.name for stage in s.stages], s.stage_of(B).placement
        (['A', 'B', 'C'], 'inline')
        >>> [step.primitive for step in s.normalize().steps]
        ['compute_inline']
        >>> s.outputs == (C.op,), s.stage_map[B.op].attach_type, s.groups
        (True, 'inline', [])
    """

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs = _checked_operations(outputs)
        self.steps: list[Step] = []  # the primitives, in the order of the calls
        self.stages: list[Stage] = []  # producers before their consumers
        self.groups: list[StageGroup] = []  # oldest first
        outputs_set = set(self.outputs)
        names = UniqueNames(separator=".")
        for op in reachable_operations(self.outputs):
            stage = Stage(
                op, names.take(op.name), op in outputs_set, siblings=self.stages
            )
            stage.loops.leaves = list(stage.roots)
            if isinstance(op, HybridOp):
                # Few programs have one.
                from refcomp.schedule import statement_loops as loops  # noqa: PLC0415

                loops.begin_statement(stage, op)
            self.stages.append(stage)
        attach_bodies(self.stages)

    def stage_of(self, target: Tensor | Operation) -> Stage:
        """Return the stage of a tensor or operation.

        Args:
            target: a tensor, or its operation.

        Raises:
            UserError: it is not part of the schedule.
        """
        stage = find_stage(self.stages, target)
        if stage is None:
            names = [stage.name for stage in self.stages]
            known = ", ".join(names)
            if isinstance(target, str):
                raise UserError(
                    f"{target!r} is a text, and the schedule is indexed by tensors",
                    where=f"the schedule has the stages {known}",
                    remedy=advise(
                        target, names, "pass the tensor itself, or its operation"
                    ),
                )
            raise UserError(
                f"{getattr(target, 'name', target)} is not part of this schedule",
                where=f"the schedule has the stages {known}",
                why="it belongs to another computation, or nothing that is computed here needs it",
                remedy="create the schedule from the operation whose result you want",
            )
        return stage

    @property
    def stage_map(self) -> Mapping[Operation, StageSchedule]:
        """Return `s[operation]` by operation: the present and the original one of each stage."""
        views = [StageSchedule(self, stage) for stage in self.stages]
        found = {view.origin_op: view for view in views}
        found |= {view.op: view for view in views}
        return MappingProxyType(found)

    def __getitem__(self, target: Tensor | Operation) -> StageSchedule:
        return StageSchedule(self, self.stage_of(target))

    def cache_read(
        self,
        tensor: Tensor,
        scope: str,
        readers: Sequence[Tensor | Operation],
        panel: int = 0,
    ) -> Tensor:
        """Let some stages read a copy of a tensor that is kept in another memory.

        The copy is a stage of its own at the root, named `A.shared` for tensor A and scope shared.
        Move it with `s[copy].compute_at(...)`. If the tensor's stage is inlined, the copy computes
        the elements itself.

        Args:
            tensor: the tensor to copy.
            scope: `"global"`, `"shared"`, `"warp"` (which is shared memory) or `"local"`.
            readers: the tensors or operations whose stages shall read the copy.
            panel: if not 0, the columns of a panel. The copy is then of shape
                (ceil(n / panel), ..., panel) for a tensor of shape (..., n): it holds panels of
                columns, one after the other, and zeros behind the last column.

        Returns:
            The tensor of the copy.

        Raises:
            UserError: a reader does not read the tensor, the scope is unknown, or the panel is
                negative or not an int. With a panel, also: the last extent is not a constant, or a
                reader is an extern operation.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            A_local = s.cache_read(A, "local", [B])

        Before::

            for i in range(8) {
              B[i] = A[i] * 2.0f32
            }

        After::

            alloc A.local: f32[8] local align 64 {
              for ax0 in range(8) {
                A.local[ax0] = A[ax0]
              }
              for i in range(8) {
                B[i] = A.local[i] * 2.0f32
              }
            }
        """
        if not isinstance(tensor, Tensor):
            raise UserError(
                f"cannot copy {tensor!r}: it is not a tensor",
                remedy="pass a tensor that some stage reads",
            )
        listed: list[Tensor | Operation] = _listed(readers)
        reading = [self.stage_of(reader) for reader in listed]
        stage = self.stage_of(tensor)
        from refcomp.schedule.primitives.cache_read import cache_read  # noqa: PLC0415

        # A step without panels reads as it always did.
        is_plain = type(panel) is int and panel == 0
        given = {} if is_plain else {"panel": panel}
        return self.apply(
            stage, cache_read, tensor.value_index, scope, reading, **given
        )

    @overload
    def cache_write(self, tensor: Tensor, scope: str) -> Tensor: ...
    @overload
    def cache_write(self, tensor: Sequence[Tensor], scope: str) -> list[Tensor]: ...
    def cache_write(
        self, tensor: Tensor | Sequence[Tensor], scope: str
    ) -> Tensor | list[Tensor]:
        """Compute a stage into another memory, and copy the results from there.

        A new stage, such as `C.local` for C and scope local, takes over the computation. The stage
        itself then copies. It keeps its axes. The reduction axes go to the new stage, whose other
        axes are new: `i.c` for `i`. Call it before other primitives change the loops.

        Args:
            tensor: the tensor that the stage computes, or the list of all if it computes several.
            scope: `"global"`, `"shared"`, `"warp"` (which is shared memory) or `"local"`.

        Returns:
            The tensor of the computation, or the list of all its tensors.

        Raises:
            UserError: the loops of the stage have been changed, it is inlined, it is not a compute,
                or the list is not complete.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            B_local = s.cache_write(B, "local")

        Before::

            for i in range(8) {
              B[i] = A[i] * 2.0f32
            }

        After::

            alloc B.local: f32[8] local align 64 {
              for i.c in range(8) {
                B.local[i.c] = A[i.c] * 2.0f32
              }
              for i in range(8) {
                B[i] = B.local[i]
              }
            }
        """
        given = _listed(tensor)
        if not given:
            raise UserError(
                "cache_write is given no tensor",
                why="the stage to be divided is named by what it computes",
                remedy="pass the tensor, or the list of all that one operation computes",
            )
        stage = self.stage_of(given[0])
        if len(given) != len(stage.op.outputs) or any(
            one is not made for one, made in zip(given, stage.op.outputs, strict=True)
        ):
            names = ", ".join(made.name for made in stage.op.outputs)
            raise UserError(
                f"cannot compute a part of stage {stage.name} into another memory",
                why=f"its operation computes {names} together",
                remedy=f"pass [{names}]",
            )
        from refcomp.schedule.primitives.cache_write import cache_write  # noqa: PLC0415

        made = self.apply(stage, cache_write, scope)
        return list(made) if isinstance(tensor, list | tuple) else made[0]

    def normalize(self) -> Schedule:
        """Return a new schedule with the same steps.

        The classic primitive shifts axes to begin at 0. Here all loops do so from the beginning.
        """
        return replay(self.outputs, self.steps)

    def copy(self, *, marks: bool = True) -> Schedule:
        """Return a new schedule of the same operations, to which the same steps are applied.

        A loop keeps its first mark, and a mark belongs to one kind of target. So schedule the loops
        once, and mark them in a copy for each target. The copy has loops of its own: take them from
        `copy[T].leaf_iter_vars`, and stages that steps made from `copy.stages`.

        Args:
            marks: False to leave out the steps `vectorize`, `unroll`, `parallel` and `bind`.

        Raises:
            UserError: `marks` is not a bool, or a later step needs a mark that is left out.

        Source: TVM, Schedule::copy.

        Example::

            >>> A = rc.placeholder((8,), name="A")
            >>> B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
            >>> host = rc.create_schedule(B)
            >>> outer, inner = host[B].split(B.op.axis[0], factor=4)
            >>> host[B].parallel(outer)
            >>> gpu = host.copy(marks=False)
            >>> outer, inner = gpu[B].leaf_iter_vars
            >>> gpu[B].bind(outer, rc.thread_axis("blockIdx.x"))
            >>> gpu[B].bind(inner, rc.thread_axis("threadIdx.x"))
            >>> [step.primitive for step in gpu.steps]
            ['split', 'bind', 'bind']
            >>> [step.primitive for step in host.steps]
            ['split', 'parallel']
        """
        if not isinstance(marks, bool):
            raise UserError(
                f"marks is {marks!r}", remedy="pass True or False, as marks=False"
            )
        kept = [s for s in self.steps if marks or s.primitive not in MARKING_PRIMITIVES]
        return replay(self.outputs, kept)

    def create_group(
        self,
        outputs: Tensor | Sequence[Tensor],
        inputs: Tensor | Sequence[Tensor],
        include_inputs: bool = False,
    ) -> StageGroup:
        """Return the group of all stages on the paths from `inputs` to `outputs`.

        Args:
            outputs: tensors that other stages compute from the inputs; one or a list.
            inputs: tensors; one or a list. Their own stages belong to the group only with
                `include_inputs`.
            include_inputs: True to move the stages of the inputs along.

        Raises:
            UserError: no stage lies on such a path.

        Source: TVM, Schedule.create_group.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
            C = rc.compute((8,), lambda i: B[i] * 2.0, name="C")
            D = rc.compute((8,), lambda i: C[i] - 1.0, name="D")
            s = rc.create_schedule(D)
            group = s.create_group(outputs=C, inputs=A)
            group.compute_at(s[D], D.op.axis[0])

        Before::

            alloc B: f32[8] align 64 {
              alloc C: f32[8] align 64 {
                for i in range(8) {
                  B[i] = A[i] + 1.0f32
                }
                for i in range(8) {
                  C[i] = B[i] * 2.0f32
                }
                for i in range(8) {
                  D[i] = C[i] - 1.0f32
                }
              }
            }

        After::

            for i in range(8) {
              alloc B: f32[1] align 64 {
                alloc C: f32[1] align 64 {
                  for i_1 in range(1) {
                    B[0] = A[i] + 1.0f32
                  }
                  for i_1 in range(1) {
                    C[0] = B[0] * 2.0f32
                  }
                  D[i] = C[0] - 1.0f32
                }
              }
            }
        """
        ends = [self.stage_of(t) for t in _listed(outputs)]
        starts = [self.stage_of(t) for t in _listed(inputs)]
        given = {"include_inputs": True} if include_inputs else {}
        from refcomp.schedule.primitives.create_group import (  # noqa: PLC0415
            create_group,
        )

        # A step needs a stage, also if the call is refused because no output is given.
        recording = (*ends, *self.stages)[0]
        self.apply(recording, create_group, ends, starts, **given)
        return self.groups[-1]

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Divide a reduction into one that keeps the results along a loop apart, and one of these.

        A stage of its own, `B.rf` for B, reduces over all other loops of the reduction. The stage
        itself then reduces over the loop. The order of the combination changes, as reducers allow.

        Args:
            tensor: a tensor that the reduction computes.
            axis: the loop of the reduction whose results are kept apart.
            factor_axis: the position of that loop among the dimensions of the new tensors, from the
                end if negative.

        Returns:
            The tensor of the new stage, or the list of all if the reduction computes several.

        Raises:
            UserError: the stage has no reduction, or the loop is not a plain loop of it.

        Example::

            A = rc.placeholder((8,), name="A")
            k = rc.reduce_axis((0, 8), name="k")
            B = rc.compute((1,), lambda i: rc.sum(A[k], axis=k), name="B")
            s = rc.create_schedule(B)
            outer, inner = s[B].split(k, factor=4)
            B_rf = s.rfactor(B, inner)

        Before::

            for i in range(1) {
              B[i] = 0.0f32
              for k in range(8) {
                B[i] = B[i] + A[k]
              }
            }

        After::

            alloc B.rf: f32[4, 1] align 64 {
              for k.inner in range(4) {
                for i.rf in range(1) {
                  B.rf[k.inner, i.rf] = 0.0f32
                  for k.outer in range(2) {
                    B.rf[k.inner, i.rf] = B.rf[k.inner, i.rf] + A[k.inner + k.outer * 4]
                  }
                }
              }
              for i in range(1) {
                B[i] = 0.0f32
                for k.inner.v in range(4) {
                  B[i] = B[i] + B.rf[k.inner.v, 0]
                }
              }
            }
        """
        given = {"factor_axis": factor_axis} if factor_axis != 0 else {}
        from refcomp.schedule.primitives.rfactor import rfactor  # noqa: PLC0415

        made = self.apply(self.stage_of(tensor), rfactor, axis, **given)
        return list(made) if len(made) > 1 else made[0]

    def apply(
        self,
        stage: Stage,
        primitive: Callable[Concatenate[Stage, Provenance, P], R],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        """Apply a primitive to a stage, record it, and return its result.

        The methods of stages call it. Call it for a primitive of your own.

        Args:
            stage: the stage, such as `s.stage_of(T)`.
            primitive: a function of the stage, a `Provenance` and the other arguments. A step
                records it by name, so `replay` needs it in `refcomp.schedule.primitives.table`.
            *args: arguments of the primitive.
            **options: named arguments of the primitive.

        Raises:
            RefcompError: the primitive was refused, and nothing is recorded.

        Example::

            >>> from refcomp.schedule.primitives.mark import unroll
            >>> A = rc.placeholder((8,), name="A")
            >>> B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
            >>> s = rc.create_schedule(B)
            >>> s.apply(s.stage_of(B), unroll, B.op.axis[0])
            >>> [step.primitive for step in s.steps]
            ['unroll']
        """
        line = caller_line()
        name = primitive.__name__
        result = primitive(stage, Provenance(name, line), *args, **options)
        self._keep_group(name, result)
        named = tuple(to_name(arg) for arg in args)
        self.steps.append(Step(stage.name, name, named, tuple(options.items()), line))
        return result

    def _keep_group(self, primitive: str, result: object) -> None:
        """Keep the group that a primitive has found."""
        if primitive == CREATE_GROUP:
            self.groups.append(StageGroup(self, cast("Sequence[Stage]", result)))


def _listed(given: T | Sequence[T]) -> list[T]:
    """Return the items of a list, or anything else as the only item."""
    return list(given) if isinstance(given, list | tuple) else [cast("T", given)]


def create_schedule(ops: Operation | Tensor | Sequence[Operation | Tensor]) -> Schedule:
    """Return the default schedule of one or several operations or tensors.

    Each operation has a loop nest of its own, in the order of its axes, producers first.

    Args:
        ops: an operation, a tensor, or a list of these. What they need is part of the schedule.

    Raises:
        UserError: `ops` is empty, or holds something else.

    Source: TVM, te.create_schedule.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> C = rc.compute((4,), lambda i: B[i] * 2.0, name="C")
        >>> print(rc.lower(rc.create_schedule(C), [A, C], "two_stages"))
        func two_stages(A: f32[4], C: f32[4] out) {
          alloc B: f32[4] align 64 {
            for i in range(4) {
              B[i] = A[i] + 1.0f32
            }
            for i in range(4) {
              C[i] = B[i] * 2.0f32
            }
          }
        }
    """
    return Schedule(_checked_operations(ops))


def _checked_operations(ops: object) -> tuple[Operation, ...]:
    given = tuple(ops) if isinstance(ops, list | tuple) else (ops,)
    wrong = [op for op in given if not isinstance(op, Operation | Tensor)]
    if wrong or not given:
        raise UserError(
            f"a schedule cannot compute {wrong[0] if wrong else 'nothing'}",
            remedy="pass what compute() returned, or a list of such",
        )
    return tuple(op.op if isinstance(op, Tensor) else op for op in given)


def replay(outputs: Sequence[Operation], steps: Sequence[Step]) -> Schedule:
    """Return a new schedule of `outputs` to which `steps` are applied.

    Stages and axes are found by name. So are stages that earlier steps made, because equal steps
    give them equal names.

    Args:
        outputs: the operations of the new schedule, with the names that the steps use.
        steps: `schedule.steps` of another schedule, or a beginning of it.

    Raises:
        UserError: a step names a stage or an axis that does not exist, or is refused.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> s[B].vectorize(inner)
        >>> [step.primitive for step in s.steps]
        ['split', 'vectorize']
        >>> print(rc.lower(rc.replay([B.op], s.steps[:1]), [A, B], "split_alone"))
        func split_alone(A: f32[8], B: f32[8] out) {
          for i.outer in range(2) {
            for i.inner in range(4) {
              B[i.outer * 4 + i.inner] = A[i.outer * 4 + i.inner] + 1.0f32
            }
          }
        }
    """
    schedule = Schedule(outputs)
    if not isinstance(steps, list | tuple) or not all(
        isinstance(s, Step) for s in steps
    ):
        raise UserError(
            f"{steps!r} are not the steps of a schedule",
            remedy="pass schedule.steps of another schedule",
        )
    # Imported here, since most programs use few primitives.
    from refcomp.schedule.primitives.table import REPLAYED  # noqa: PLC0415

    for step in steps:
        stage, args = resolve(step, schedule.stages)
        provenance = Provenance(step.primitive, step.line)
        try:
            primitive = REPLAYED[step.primitive]
            result = primitive(stage, provenance, *args, **dict(step.options))
        except RefcompError as error:
            error.earlier += (Snippet(step.line, "recorded here"),)
            raise
        schedule._keep_group(step.primitive, result)
        schedule.steps.append(step)
    return schedule
