"""Maps of memory plans: sizes, bounds, the picture, and what is refused."""

import itertools

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph
from refcomp.graph.debug.memory import MemoryMap, map_memory
from refcomp.graph.kernels import schedule_graph
from refcomp.graph.optimize import optimize
from refcomp.graph.plan import make_plan
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import cpu
from tests.strategies.graphs import digits_graph, make_graph


def map_of(graph, **symbols) -> MemoryMap:
    _, kernels = schedule_graph(graph, "interp")
    return map_memory(graph, kernels, symbols)


def chain(builder, x):
    for operator in ("relu", "softmax", "tanh"):
        x = builder.node(operator, [x], name=operator)
    return x


def test_the_map_is_that_of_a_run() -> None:
    module = compile_graph(digits_graph(), "interp")
    constants = {value: array(a) for value, a in module.graph.constants.items()}
    plan = make_plan(module, {"N": 3}, constants, cpu())
    found = map_memory(module.graph, module.kernels, {"N": 3})
    assert found.peak == plan.bytes
    assert found.constants == sum(a.nbytes for a in module.graph.constants.values())
    assert found.steps == len(module.kernels)


def test_digits_are_at_the_lower_bound() -> None:
    found = map_of(optimize(digits_graph()), N=64)
    assert found.least <= found.peak <= 1.05 * found.least
    assert found.apart > found.peak


def test_boxes_that_live_together_do_not_overlap() -> None:
    boxes = map_of(optimize(digits_graph()), N=5).boxes
    for number, one in enumerate(boxes):
        for other in boxes[:number]:
            together = one.first <= other.last and other.first <= one.last
            apart = one.offset + one.size <= other.offset or other.offset + other.size <= one.offset
            assert apart or not together


def test_an_elementwise_kernel_could_write_over_its_input() -> None:
    found = map_of(make_graph(chain, (16, 64)))
    size = 16 * 64 * 4
    # relu and tanh could; softmax reads a row to write an element, and has a workspace.
    assert found.peak == found.least >= 2 * size
    assert found.in_place == found.least
    elementwise = make_graph(lambda b, x: b.node("tanh", [b.node("relu", [x])]), (16, 64))
    found = map_of(elementwise)
    assert (found.least, found.in_place) == (2 * size, size)


def test_an_input_that_is_read_again_cannot_be_written_over() -> None:
    def build(builder, x):
        return builder.node("add", [builder.node("relu", [x]), x])

    size = 16 * 64 * 4
    assert map_of(make_graph(build, (16, 64))).in_place == 2 * size


def test_a_fused_kernel_could_write_over_what_only_its_sum_reads() -> None:
    def build(builder, x):
        product = builder.node("matmul", [x, x], name="m")
        return builder.node("add", [builder.node("matmul", [product, product]), x])

    size = 16 * 16 * 4
    graph = optimize(make_graph(build, (16, 16)))
    assert len(graph.nodes) == 2
    found = map_of(graph)
    assert found.in_place < found.least
    assert found.in_place >= 2 * size


def test_the_picture_shows_each_value_where_it_lies() -> None:
    text = str(map_of(make_graph(chain, (16, 64))))
    lines = text.splitlines()
    assert lines[0].startswith("peak 8,192 bytes, lower bound 8,192, ratio 1.000; in place")
    rows = [line for line in lines if line.endswith("|")]
    letters = [row.partition("|")[2] for row in rows]
    assert {len(row) for row in letters} == {len("|") + 5}  # steps -1 to 3
    # The input is there from step -1 to 0, relu from 0 to 1; both halves of the block are used.
    assert {row[0] for row in letters} == {"A", "."}
    assert {row[1] for row in letters} == {"A", "B"}
    table = lines[lines.index("") + len(rows) + 4 :]
    assert [line.split()[0] for line in table[:2]] == ["A", "B"]
    assert table[0].endswith("-1-0       x")
    assert {line.split()[-1] for line in table} >= {"x", "relu", "softmax", "tanh"}


def test_many_steps_share_columns() -> None:
    def build(builder, x):
        for _ in range(150):
            x = builder.node("softmax", [x])
        return x

    lines = str(map_of(make_graph(build, (2, 4)))).splitlines()
    assert any(line.endswith("steps -1 to 150, a column for 2 steps") for line in lines)
    assert max(len(line) for line in lines if line.endswith("|")) < 120


def test_an_empty_graph_has_an_empty_map() -> None:
    builder = GraphBuilder("net")
    found = map_of(builder.finish([]))
    assert (found.peak, found.least, found.ratio) == (0, 0, 1.0)
    assert str(found).startswith("peak 0 bytes")


def test_a_symbol_without_a_size_is_refused() -> None:
    with pytest.raises(UserError) as info:
        map_of(make_graph(chain, ("N", 64)))
    assert info.value.what == "the symbol 'N' has no size"
    assert info.value.remedy == "give it: --symbol N=1"


def test_sizes_that_only_a_run_determines_are_refused() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (4,))
    indices, count = builder.nodes("nonzero", [x])
    graph = builder.finish([builder.narrow(indices, count, axis=1, name="found")])
    with pytest.raises(UserError) as info:
        map_of(graph)
    assert info.value.what == "the memory of the graph net is not known before a run"
    assert info.value.why == "only a run determines the extent of found"


def test_writing_in_place_never_needs_more_than_the_peak() -> None:
    def joined(builder, x):
        for _ in range(3):  # each output holds the one before it
            x = builder.node("concatenate", [x, builder.node("relu", [x])], {"axis": 0})
        return builder.node("tanh", [x])

    found = map_of(make_graph(joined, (1, 16)))
    whole = 8 * 16 * 4
    # tanh could write over the only value that lives then.
    assert (found.least, found.in_place) == (2 * whole, whole)
    assert found.in_place <= found.peak


def test_a_target_without_addresses_in_buffers_shares_nothing() -> None:
    graph = make_graph(chain, (16, 64))
    _, kernels = schedule_graph(graph, "interp")
    found = map_memory(graph, kernels, {}, "opencl")
    assert found.peak == found.apart > found.least
    ends = [(box.offset, box.offset + box.size) for box in found.boxes]
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(sorted(ends)))
