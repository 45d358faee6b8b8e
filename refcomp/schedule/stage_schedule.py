"""`s[T]`: the stage of tensor T in schedule s, with the primitives that change its loops.

Each method applies one primitive and records it as a step of the schedule. A primitive that is
refused changes nothing. Its docstring shows the loops before and after an example; a test runs it.
Each method imports its primitive, since a program uses few of them.
"""

# ruff: noqa: PLC0415  (see above)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Concatenate

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.schedule.stage import Provenance, Stage
from refcomp.schedule.stage_view import P, R, Recorder, StageView
from refcomp.te.tensor import IterVar, Tensor

if TYPE_CHECKING:
    from refcomp.te.intrin import TensorIntrin

# house: allow-long (the manual pages of all primitives)


class StageSchedule(StageView):
    """The loops of one stage, and the primitives that change them."""

    __slots__ = ()

    def split(
        self, parent: IterVar, factor: int | None = None, nparts: int | None = None
    ) -> tuple[IterVar, IterVar]:
        """Split loop `parent` into an outer and an inner loop.

        Args:
            parent: a loop of this stage.
            factor: iterations of the inner loop, at least 1. Give either `factor` or `nparts`.
            nparts: iterations of the outer loop, at least 1.

        Returns:
            The outer loop `i.outer` and the inner loop `i.inner` of loop `i`. With `factor`, their
            extents are ceil(extent / factor) and factor; with `nparts`, they are nparts and
            ceil(extent / nparts). A guard skips iterations beyond the extent.

        Raises:
            UserError: `parent` is not a loop of this stage, or is vectorized, unrolled, parallel or
                bound; or the size is not an int of at least 1.

        Example::

            A = rc.placeholder((10,), name="A")
            B = rc.compute((10,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            (i,) = B.op.axis
            outer, inner = s[B].split(i, factor=4)

        Before::

            for i in range(10) {
              B[i] = A[i] * 2.0f32
            }

        After::

            for i.outer in range(3) {
              for i.inner in range(4) {
                if (i.outer * 4 + i.inner < 10) {
                  B[i.outer * 4 + i.inner] = A[i.outer * 4 + i.inner] * 2.0f32
                }
              }
            }
        """
        sizes = {"factor": factor, "nparts": nparts}
        given = {name: size for name, size in sizes.items() if size is not None}
        from refcomp.schedule.primitives.split import split

        return self._apply(split, parent, **given)

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: int, y_factor: int
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two nested loops and make the inner parts a tile inside of the outer parts.

        Args:
            x_parent: a loop of this stage.
            y_parent: the loop directly inside `x_parent`.
            x_factor: rows of a tile, at least 1.
            y_factor: columns of a tile, at least 1.

        Returns:
            The loops x.outer, y.outer, x.inner and y.inner, outermost first.

        Raises:
            UserError: `y_parent` is not directly inside `x_parent`, or as for `split`.

        Example::

            A = rc.placeholder((6,), name="A")
            B = rc.compute((8, 6), lambda i, j: A[j], name="B")
            s = rc.create_schedule(B)
            i, j = B.op.axis
            i_outer, j_outer, i_inner, j_inner = s[B].tile(i, j, x_factor=4, y_factor=3)

        Before::

            for i in range(8) {
              for j in range(6) {
                B[i, j] = A[j]
              }
            }

        After::

            for i.outer in range(2) {
              for j.outer in range(2) {
                for i.inner in range(4) {
                  for j.inner in range(3) {
                    B[i.outer * 4 + i.inner, j.outer * 3 + j.inner] = A[j.outer * 3 + j.inner]
                  }
                }
              }
            }
        """
        from refcomp.schedule.primitives.split import tile

        return self._apply(tile, x_parent, y_parent, x_factor, y_factor)

    def fuse(self, *axes: IterVar) -> IterVar:
        """Fuse directly nested loops into one loop over all their iterations.

        Args:
            *axes: loops of one kind, outermost first, directly nested. One loop stays as it is.
                Without loops, as for a tensor of rank 0, the stage gets an outermost loop `single`
                of one iteration, which can be bound to threads.

        Returns:
            The loop `i.j.fused` of loops `i` and `j`. Its extent is the product of theirs.

        Raises:
            UserError: loops that are not directly nested or not of one kind, or a loop that is
                vectorized, unrolled, parallel or bound.

        Example::

            A = rc.placeholder((8, 6), name="A")
            B = rc.compute((8, 6), lambda i, j: A[i, j] * 2.0, name="B")
            s = rc.create_schedule(B)
            i, j = B.op.axis
            fused = s[B].fuse(i, j)

        Before::

            for i in range(8) {
              for j in range(6) {
                B[i, j] = A[i, j] * 2.0f32
              }
            }

        After::

            for i.j.fused in range(48) {
              B[i.j.fused // 6, i.j.fused % 6] = A[i.j.fused // 6, i.j.fused % 6] * 2.0f32
            }
        """
        from refcomp.schedule.primitives.fuse import fuse

        return self._apply(fuse, *axes)

    def reorder(self, *axes: IterVar) -> None:
        """Put loops into the given order.

        Together the loops keep the positions that they hold now. All other loops stay where they
        are. Reduction and data-parallel loops may be mixed.

        Args:
            *axes: loops of this stage, each named once, outermost first.

        Raises:
            UserError: an axis is not a loop of this stage, or is named twice.

        Example::

            A = rc.placeholder((8, 6), name="A")
            B = rc.compute((8, 6), lambda i, j: A[i, j] * 2.0, name="B")
            s = rc.create_schedule(B)
            i, j = B.op.axis
            s[B].reorder(j, i)

        Before::

            for i in range(8) {
              for j in range(6) {
                B[i, j] = A[i, j] * 2.0f32
              }
            }

        After::

            for j in range(6) {
              for i in range(8) {
                B[i, j] = A[i, j] * 2.0f32
              }
            }
        """
        from refcomp.schedule.primitives.reorder import reorder

        self._apply(reorder, *axes)

    def vectorize(self, axis: IterVar) -> None:
        """Execute all iterations of a loop at once, by vector operations.

        Args:
            axis: a data-parallel loop with a constant extent of at most 1024.

        Raises:
            UserError: the loop is a reduction or is marked already, or its extent is not such a
                constant.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            (i,) = B.op.axis
            s[B].vectorize(i)

        Before::

            for i in range(8) {
              B[i] = A[i] * 2.0f32
            }

        After::

            for i in range(8) vectorized {
              B[i] = A[i] * 2.0f32
            }
        """
        from refcomp.schedule.primitives.mark import vectorize

        self._apply(vectorize, axis)

    def unroll(self, axis: IterVar) -> None:
        """Write the iterations of a loop one after the other, as straight code.

        Args:
            axis: a loop of constant extent. A later pass unrolls it, up to a limit.

        Raises:
            UserError: the loop is marked already, or its extent is not constant.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            (i,) = B.op.axis
            s[B].unroll(i)

        Before::

            for i in range(8) {
              B[i] = A[i] * 2.0f32
            }

        After::

            for i in range(8) unrolled {
              B[i] = A[i] * 2.0f32
            }
        """
        from refcomp.schedule.primitives.mark import unroll

        self._apply(unroll, axis)

    def parallel(self, axis: IterVar) -> None:
        """Share the iterations of a loop among the threads of the host.

        Args:
            axis: a data-parallel loop.

        Raises:
            UserError: the loop is a reduction or is marked already.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            (i,) = B.op.axis
            s[B].parallel(i)

        Before::

            for i in range(8) {
              B[i] = A[i] * 2.0f32
            }

        After::

            for i in range(8) parallel {
              B[i] = A[i] * 2.0f32
            }
        """
        from refcomp.schedule.primitives.mark import parallel

        self._apply(parallel, axis)

    def bind(self, axis: IterVar, thread: IterVar) -> None:
        """Let each thread of a GPU, or each group of threads, execute one iteration of a loop.

        The threads of a group may share a reduction: each computes a part, and they combine the
        parts in shared memory. Threads of `vthread` are virtual: each real thread executes all of
        them in turn.

        Args:
            axis: a loop of this stage.
            thread: an axis of `refcomp.thread_axis`. Each stage binds a thread axis once, but
                `vthread` several times.

        Raises:
            UserError: the loop is marked already, the extents differ, or `thread` is not a thread
                axis or is in use.
            Unsupported: a reduction is bound to groups (`blockIdx`), which cannot wait for each
                other.

        Example::

            A = rc.placeholder((8, 6), name="A")
            B = rc.compute((8, 6), lambda i, j: A[i, j] * 2.0, name="B")
            s = rc.create_schedule(B)
            i, j = B.op.axis
            s[B].bind(i, rc.thread_axis("blockIdx.x"))
            s[B].bind(j, rc.thread_axis("threadIdx.x"))

        Before::

            for i in range(8) {
              for j in range(6) {
                B[i, j] = A[i, j] * 2.0f32
              }
            }

        After::

            for blockIdx.x in range(8) blockIdx.x {
              for threadIdx.x in range(6) threadIdx.x {
                B[blockIdx.x, threadIdx.x] = A[blockIdx.x, threadIdx.x] * 2.0f32
              }
            }
        """
        from refcomp.schedule.primitives.bind import bind

        self._apply(bind, axis, thread)

    def tensorize(self, axis: IterVar, intrin: TensorIntrin) -> None:
        """Replace a loop and everything inside by a tensor intrinsic.

        Lowering checks that the loops compute the same as the intrinsic, and that no guard stands
        inside.

        Args:
            axis: the outermost of the loops to replace. They have constant extents and no marks,
                and as many iterations as the intrinsic.
            intrin: what `refcomp.decl_tensor_intrin` returned.

        Raises:
            UserError: the loops have marks, other extents or another computation, or the stage is
                tensorized already.

        Example::

            a = rc.placeholder((4,), name="a")
            b = rc.compute((4,), lambda i: a[i] * 2.0, name="b")


            def call_double(ins, outs):
                builder = rc.ir_builder.create()
                src, dst = ins[0].access_ptr("r"), outs[0].access_ptr("w")
                builder.emit(rc.call_extern("int32", "double_four", dst, src))
                return builder.get()


            double_four = rc.decl_tensor_intrin(b.op, call_double)
            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            outer, inner = s[B].split(B.op.axis[0], factor=4)
            s[B].tensorize(inner, double_four)

        Before::

            for i in range(8) {
              B[i] = A[i] * 2.0f32
            }

        After::

            for i.outer in range(2) {
              extern i32 double_four(write(B[i.outer * 4]), read(A[i.outer * 4]))
            }
        """
        from refcomp.schedule.primitives.tensorize import tensorize

        self._apply(tensorize, axis, intrin)

    def compute_inline(self) -> None:
        """Replace each read of the stage by its expression, so that it needs no memory.

        Raises:
            UserError: the stage is an output, a reduction or not a compute, or a scan or an extern
                operation reads its memory.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            C = rc.compute((8,), lambda i: B[i] + 1.0, name="C")
            s = rc.create_schedule(C)
            s[B].compute_inline()

        Before::

            alloc B: f32[8] align 64 {
              for i in range(8) {
                B[i] = A[i] * 2.0f32
              }
              for i in range(8) {
                C[i] = B[i] + 1.0f32
              }
            }

        After::

            for i in range(8) {
              C[i] = A[i] * 2.0f32 + 1.0f32
            }
        """
        from refcomp.schedule.primitives.place import compute_inline

        self._apply(compute_inline)

    def compute_root(self) -> None:
        """Give the stage a loop nest of its own before all its consumers, which is the default.

        It undoes `compute_inline` and `compute_at`. A stage that computes a row of a scan returns
        to the loop of the scan.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            C = rc.compute((8,), lambda i: B[i] + 1.0, name="C")
            s = rc.create_schedule(C)
            s[B].compute_inline()
            s[B].compute_root()

        Before::

            alloc B: f32[8] align 64 {
              for i in range(8) {
                B[i] = A[i] * 2.0f32
              }
              for i in range(8) {
                C[i] = B[i] + 1.0f32
              }
            }

        After::

            alloc B: f32[8] align 64 {
              for i in range(8) {
                B[i] = A[i] * 2.0f32
              }
              for i in range(8) {
                C[i] = B[i] + 1.0f32
              }
            }
        """
        from refcomp.schedule.primitives.place import compute_root

        self._apply(compute_root)

    def compute_at(self, consumer: StageSchedule, axis: IterVar) -> None:
        """Compute the stage inside a loop of a stage that reads it.

        Each iteration computes the region that it needs, for example a tile and its halo. All
        readers must be `consumer` or be computed inside that loop, which lowering checks.

        Args:
            consumer: a stage that reads this one, as `s[C]`.
            axis: a loop of the consumer.

        Raises:
            UserError: the stage is an output, a placeholder, a scan or an extern operation; or a
                reader can never be computed inside that loop.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            C = rc.compute((8,), lambda i: B[i] + 1.0, name="C")
            s = rc.create_schedule(C)
            outer, inner = s[C].split(C.op.axis[0], factor=4)
            s[B].compute_at(s[C], outer)

        Before::

            alloc B: f32[8] align 64 {
              for i in range(8) {
                B[i] = A[i] * 2.0f32
              }
              for i in range(8) {
                C[i] = B[i] + 1.0f32
              }
            }

        After::

            for i.outer in range(2) {
              alloc B: f32[4] align 64 {
                for i in range(4) {
                  B[i] = A[i.outer * 4 + i] * 2.0f32
                }
                for i.inner in range(4) {
                  C[i.outer * 4 + i.inner] = B[i.inner] + 1.0f32
                }
              }
            }
        """
        stage = consumer.stage if isinstance(consumer, StageSchedule) else consumer
        from refcomp.schedule.primitives.compute_at import compute_at

        self._apply(compute_at, stage, axis)

    def set_scope(self, scope: str) -> None:
        """Choose the memory of the stage.

        Args:
            scope: `"global"`, `"shared"` (of the threads of a group), `"warp"` (which is shared
                memory, too) or `"local"` (of one thread).
                The default follows from the loop at which the stage is computed.

        Raises:
            UserError: the scope is unknown, or the memory belongs to the caller.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            C = rc.compute((8,), lambda i: B[i] + 1.0, name="C")
            s = rc.create_schedule(C)
            s[B].set_scope("local")

        Before::

            alloc B: f32[8] align 64 {
              for i in range(8) {
                B[i] = A[i] * 2.0f32
              }
              for i in range(8) {
                C[i] = B[i] + 1.0f32
              }
            }

        After::

            alloc B: f32[8] local align 64 {
              for i in range(8) {
                B[i] = A[i] * 2.0f32
              }
              for i in range(8) {
                C[i] = B[i] + 1.0f32
              }
            }
        """
        from refcomp.schedule.primitives.set_scope import set_scope

        self._apply(set_scope, scope)

    def pragma(self, axis: IterVar, key: str, value: int | str = 1) -> None:
        """Attach a hint for the compiler to a loop.

        Args:
            axis: a loop of this stage.
            key: `"auto_unroll_max_step"`: unroll loops inside that have at most `value` stores in
                all. `"unroll_explicit"`: with value 0, leave unrolled loops to the target's
                compiler, on `cuda` by `#pragma unroll`.
                `"parallel_stride_pattern"`: each task of the parallel loop takes every so many
                iterations, in place of neighbouring ones.
                `"parallel_barrier_when_finish"`: threads wait for each other at the end of the
                parallel loop, as they always do.
                `"import_llvm"`: `value` is LLVM IR that defines C functions for the whole
                module, on hosts only.
                `"import_c"`: `value` is C that defines such functions; clang compiles it. The
                text may call libraries, and may have static and thread-local variables, and
                constructors. Several texts are kept apart, like files.
            value: a number of at least 0, or the text of LLVM IR or of C.

        Raises:
            UserError: the key is unknown or left out, or the value does not suit it. Lowering
                refuses pragmas of parallel loops at other loops.
            ToolchainError: clang is missing, or refuses the text.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            (i,) = B.op.axis
            s[B].pragma(i, "auto_unroll_max_step", 16)

        Before::

            for i in range(8) {
              B[i] = A[i] * 2.0f32
            }

        After::

            pragma auto_unroll_max_step 16 {
              for i in range(8) {
                B[i] = A[i] * 2.0f32
              }
            }
        """
        from refcomp.schedule.primitives.hint import pragma

        self._apply(pragma, axis, key, value)

    def prefetch(self, tensor: Tensor, axis: IterVar, offset: int) -> None:
        """Load elements into the cache of the host some iterations before they are read.

        GPUs ignore it.

        Args:
            tensor: a tensor that the stage reads.
            axis: a loop of this stage.
            offset: iterations between the hint and the read, at least 0.

        Raises:
            UserError: the stage does not read the tensor, or the offset is negative.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            (i,) = B.op.axis
            s[B].prefetch(A, i, offset=2)

        Before::

            for i in range(8) {
              B[i] = A[i] * 2.0f32
            }

        After::

            for i in range(8) {
              prefetch A[i + 2]
              B[i] = A[i] * 2.0f32
            }
        """
        if not isinstance(tensor, Tensor):
            raise UserError(
                f"cannot prefetch {tensor!r}: it is not a tensor",
                remedy="pass a tensor that the stage reads",
            )
        maker = self.schedule.stage_of(tensor)
        from refcomp.schedule.primitives.hint import prefetch

        self._apply(prefetch, axis, maker, tensor.value_index, offset)

    def double_buffer(self) -> None:
        """Hold the memory of the stage twice, and fill it one iteration ahead.

        The stage must be computed at a serial loop. Building reports if it cannot be done there.

        Raises:
            UserError: the memory belongs to the caller.
            Unsupported: the operation has several outputs.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            C = rc.compute((8,), lambda i: B[i] + 1.0, name="C")
            s = rc.create_schedule(C)
            outer, inner = s[C].split(C.op.axis[0], factor=4)
            s[B].compute_at(s[C], outer)
            s[B].double_buffer()

        Before::

            alloc B: f32[8] align 64 {
              for i in range(8) {
                B[i] = A[i] * 2.0f32
              }
              for i in range(8) {
                C[i] = B[i] + 1.0f32
              }
            }

        After::

            for i.outer in range(2) {
              pragma double_buffer 1 {
                alloc B: f32[4] align 64 {
                  for i in range(4) {
                    B[i] = A[i.outer * 4 + i] * 2.0f32
                  }
                  for i.inner in range(4) {
                    C[i.outer * 4 + i.inner] = B[i.inner] + 1.0f32
                  }
                }
              }
            }
        """
        from refcomp.schedule.primitives.hint import double_buffer

        self._apply(double_buffer)

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Set the distance in memory of elements that are neighbours along an axis.

        The distance becomes k * factor + offset elements for some k. So the elements of a column do
        not lie in one bank of shared memory.

        Args:
            axis: an axis of the operation, except the innermost.
            factor: a number of elements, at least 1.
            offset: a number of elements, at least 0.

        Raises:
            UserError: the axis is innermost or not the operation's, or the memory belongs to the
                caller.

        Example::

            A = rc.placeholder((8, 6), name="A")
            B = rc.compute((8, 6), lambda i, j: A[i, j] * 2.0, name="B")
            C = rc.compute((8, 6), lambda i, j: B[i, j] + 1.0, name="C")
            s = rc.create_schedule(C)
            s[B].storage_align(B.op.axis[0], factor=16, offset=1)

        Before::

            alloc B: f32[8, 6] align 64 {
              for i in range(8) {
                for j in range(6) {
                  B[i, j] = A[i, j] * 2.0f32
                }
              }
              for i in range(8) {
                for j in range(6) {
                  C[i, j] = B[i, j] + 1.0f32
                }
              }
            }

        After::

            alloc B: f32[8, 17] align 64 {
              for i in range(8) {
                for j in range(6) {
                  B[i, j] = A[i, j] * 2.0f32
                }
              }
              for i in range(8) {
                for j in range(6) {
                  C[i, j] = B[i, j] + 1.0f32
                }
              }
            }
        """
        from refcomp.schedule.primitives.hint import storage_align

        self._apply(storage_align, axis, factor, offset)

    def set_store_predicate(self, predicate: Expr) -> None:
        """Choose the thread that stores a value which several threads of a group have.

        Args:
            predicate: `thread.var == 0`, or several such joined by `refcomp.all`. The stage must
                not bind an output axis to the thread axis.

        Raises:
            UserError: the condition has another form, or would leave elements unwritten.

        Example::

            A = rc.placeholder((4, 32), name="A")
            k = rc.reduce_axis((0, 32), name="k")
            B = rc.compute((4,), lambda i: rc.sum(A[i, k], axis=k), name="B")
            s = rc.create_schedule(B)
            thread = rc.thread_axis("threadIdx.x")
            s[B].bind(B.op.axis[0], rc.thread_axis("blockIdx.x"))
            s[B].bind(k, thread)
            s[B].set_store_predicate(thread.var == 0)

        Before::

            for i in range(4) {
              B[i] = 0.0f32
              for k in range(32) {
                B[i] = B[i] + A[i, k]
              }
            }

        After::

            for blockIdx.x in range(4) blockIdx.x {
              for threadIdx.x in range(32) threadIdx.x {
                alloc B.share: f32[1] local align 64 {
                  alloc B.parts: f32[32] shared align 64 {
                    B.share[0] = 0.0f32
                    B.share[0] = B.share[0] + A[blockIdx.x, threadIdx.x]
                    B.parts[threadIdx.x] = B.share[0]
                    if (threadIdx.x < 16) {
                      B.parts[threadIdx.x] = B.parts[threadIdx.x] + B.parts[threadIdx.x + 16]
                    }
                    if (threadIdx.x < 8) {
                      B.parts[threadIdx.x] = B.parts[threadIdx.x] + B.parts[threadIdx.x + 8]
                    }
                    if (threadIdx.x < 4) {
                      B.parts[threadIdx.x] = B.parts[threadIdx.x] + B.parts[threadIdx.x + 4]
                    }
                    if (threadIdx.x < 2) {
                      B.parts[threadIdx.x] = B.parts[threadIdx.x] + B.parts[threadIdx.x + 2]
                    }
                    if (threadIdx.x < 1) {
                      B.parts[threadIdx.x] = B.parts[threadIdx.x] + B.parts[threadIdx.x + 1]
                    }
                    if (threadIdx.x == 0) {
                      B[blockIdx.x] = B.parts[0]
                    }
                  }
                }
              }
            }
        """
        from refcomp.schedule.primitives.set_store_predicate import set_store_predicate

        self._apply(set_store_predicate, predicate)

    def env_threads(self, threads: Sequence[IterVar]) -> None:
        """Begin the kernel outside all loops of the stage, so that one launch computes all of it.

        Each thread executes the loops that stand outside the bound ones. For a scan, one group
        computes all rows in order.

        Args:
            threads: thread axes of constant extents. An axis of `blockIdx` must be bound by a loop
                of this stage. A scan takes axes of `threadIdx` only.

        Raises:
            UserError: the axes are not such, or the stage names its threads already.

        Example::

            A = rc.placeholder((8,), name="A")
            B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
            s = rc.create_schedule(B)
            (i,) = B.op.axis
            s[B].env_threads([rc.thread_axis((0, 4), "threadIdx.x")])
            outer, inner = s[B].split(i, factor=4)
            s[B].bind(inner, rc.thread_axis((0, 4), "threadIdx.x"))

        Before::

            for i in range(8) {
              B[i] = A[i] * 2.0f32
            }

        After::

            for threadIdx.x in range(4) threadIdx.x {
              for i.outer in range(2) {
                B[i.outer * 4 + threadIdx.x] = A[i.outer * 4 + threadIdx.x] * 2.0f32
              }
            }
        """
        from refcomp.schedule.primitives.env_threads import env_threads

        self._apply(env_threads, threads)

    def _apply(
        self,
        primitive: Callable[Concatenate[Stage, Provenance, P], R],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        return self.schedule.apply(self.stage, primitive, *args, **options)


class StageGroup:
    """Several stages that move together, producers first."""

    __slots__ = ("schedule", "stages")

    def __init__(self, schedule: Recorder, stages: Sequence[Stage]) -> None:
        self.schedule = schedule
        self.stages = tuple(stages)

    def compute_at(self, consumer: StageSchedule, axis: IterVar) -> None:
        """Compute each stage of the group at a loop of the stage that reads them all."""
        for stage in reversed(self.stages):
            StageSchedule(self.schedule, stage).compute_at(consumer, axis)

    def compute_root(self) -> None:
        """Give each stage of the group a loop nest of its own."""
        for stage in self.stages:
            StageSchedule(self.schedule, stage).compute_root()
