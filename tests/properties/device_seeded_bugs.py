"""Deliberate bugs in what the compiler makes for GPUs; see `tests.properties.seeded_bugs`.

All are found by the interpreter, which runs the kernels thread by thread: by a wrong result, by a
race, by a read of what nothing wrote.
"""

from tests.properties.seeded_bugs import SeededBug

_BARRIERS, _CONFLICTS = "refcomp.passes.insert_barriers", "refcomp.passes.analysis.thread_conflicts"
_SPLIT = "refcomp.passes.split_host_device"
_DOUBLE = "refcomp.passes.inject_double_buffers"
_VIRTUAL = "refcomp.passes.inject_virtual_threads"
_CROSS = "refcomp.lowering.cross_thread"
_REDUCTIONS = ("fold", "fold two axes", "matmul", "argmax")

DEVICE = (
    # Barriers.
    SeededBug(
        *("barriers between statements dropped", _BARRIERS, "_BarrierPlacement._separated"),
        *("self._any_conflict(before, reach.entering, together)", "False"),
    ),
    SeededBug(
        *("barriers around loops dropped", _BARRIERS, "_BarrierPlacement._around_back_edge"),
        *("parts = self._separated(parts, together, self._earlier(parts, entry))", "pass"),
    ),
    SeededBug(
        *(
            "what came before a statement forgotten after it",
            _BARRIERS,
            "_BarrierPlacement._separated",
        ),
        *("before += reach.leaving", "before = reach.leaving"),
    ),
    SeededBug(
        *("shared memory not watched", _BARRIERS, "_visit_kernel"),
        *("item.buffer.scope != LOCAL", 'item.buffer.scope == "global"'),
    ),
    SeededBug(
        *("a read taken to meet no write", _CONFLICTS, "ThreadConflicts.between"),
        *("p.effect == q.effect and p.effect != WRITE", "p.effect != q.effect"),
    ),
    SeededBug(
        *("threads told apart in x alone", _CONFLICTS, "ThreadConflicts.between"),
        *("in self._threads]", "in self._threads[-1:]]"),
    ),
    SeededBug(
        *(
            "threads told apart by any equation",
            "refcomp.passes.analysis.index_equations",
            "forces_equal",
        ),
        *("return all(", "return any("),
    ),
    # Kernels and their launches.
    SeededBug(
        *("group and grid mixed up in the launch", _SPLIT, "_Splitting._launch"),
        *("grid=nest.grid,\n        block=nest.block", "grid=nest.block,\n        block=nest.grid"),
    ),
    SeededBug(
        *("kernel's parameters in another order than the launch's", _SPLIT, "_Splitting._launch"),
        *(
            "_kernel(name, arguments, loop)",
            "_kernel(name, tuple(sorted(arguments, key=lambda a: a.name)), loop)",
        ),
    ),
    SeededBug(
        *("extent of the host's first loop for all threads", "refcomp.lowering.loops"),
        *("Loops._kernel", "bounds.extents[first.axis]", "next(iter(bounds.extents.values()))"),
    ),
    SeededBug(
        *("thread variables mixed up", "refcomp.lowering.bounds.infer_stages", "infer_stages"),
        *("kernel.variables[stage.loops.marks[leaf]]", "kernel.variables[kernel.tags[-1]]"),
    ),
    SeededBug(
        *("guards of kernels dropped", "refcomp.lowering.loops", "Loops.guarded"),
        *("if not guards:", "if True:"),
    ),
    SeededBug(
        *("first of several guards kept alone", "refcomp.lowering.loops", "Loops.guarded"),
        *("in guards[1:]", "in guards[2:]"),
    ),
    # What is in shared and local memory.
    SeededBug(
        *("idle threads take part", "refcomp.lowering.nest", "_idle_thread_guards"),
        *("in THREADS_IN_BLOCK_TAGS and t not in used]", "in used]"),
    ),
    SeededBug(
        *("idle threads of one axis take part", "refcomp.lowering.nest", "_idle_thread_guards"),
        *("kernel, idle)", "kernel, idle[1:])"),
    ),
    SeededBug(
        *("shared region of one thread", "refcomp.lowering.bounds.regions", "_Needs._loops"),
        *("if self.scope == SHARED and self.kernel is not None:", "if False:"),
    ),
    SeededBug(
        *("shared region one element short", "refcomp.lowering.bounds.regions", "_of_extent"),
        *("simplify(low + extent - 1, facts)", "simplify(low + extent - 2, facts)"),
    ),
    SeededBug(
        *("attached stage written at the wrong offset", "refcomp.schedule.axes"),
        *("_add_origins", "simplify(origin + values[root], facts)", "values[root]"),
    ),
    # Reductions across threads.
    SeededBug(
        *("odd thread left out of the tree", _CROSS, "CrossThread._tree"),
        *("(count + 1) // 2", "count // 2"),
        kinds=_REDUCTIONS,
    ),
    SeededBug(
        *("rows of threads reduced together", _CROSS, "CrossThread._tree"),
        *("own = (*self._row, ", "own = (*(IntImm(0, I64) for _ in self._row), "),
        kinds=_REDUCTIONS,
    ),
    SeededBug(
        *("each thread stores what one has", _CROSS, "CrossThread.finish"),
        *("if not self._is_local:", "if False:"),
        kinds=_REDUCTIONS,
    ),
    SeededBug(
        *("idle threads take part in the tree", _CROSS, "CrossThread._tree"),
        *("[is_in, *self.idle]", "[is_in]"),
        kinds=("fold",),  # six times sooner than among all reductions
    ),
    SeededBug(
        *("share of a thread never begun", "refcomp.lowering.nest", "_lower_across_threads"),
        *("block([init, update, finish])", "block([update, finish])"),
        kinds=_REDUCTIONS,
    ),
    # Double buffers and virtual threads.
    SeededBug(
        *("double buffer filled where it is in use", _DOUBLE, "_Doubling.apply"),
        *("ahead, self._slot(ahead)", "ahead, self._slot(loop.var)"),
    ),
    SeededBug(
        *("stale half of a double buffer used", _DOUBLE, "_Doubling.apply"),
        *("doubled, self._slot(loop.var)", "doubled, self._slot(ahead)"),
    ),
    SeededBug(
        *("double buffer never filled first", _DOUBLE, "_double"),
        *("block([start, _double(ahead)])", "_double(ahead)"),
    ),
    SeededBug(
        *("virtual threads mixed up", _VIRTUAL, "_Distribution._repeated"),
        *("{self.loop.var: var}", "{self.loop.var: IntImm(0, var.dtype)}"),
    ),
)
