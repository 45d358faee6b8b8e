"""The traversals: order, identity, sharing, and what they carry over."""

import pytest
from hypothesis import given

from refcomp.foundation.dtype import F32, I64
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import Add, Expr, IntImm, Select, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    buffers_in,
    child_expressions,
    child_statements,
    children,
    map_children,
    memoised,
    replace_buffers,
    replacer,
    statements_in,
    substitute,
    variables_in,
    walk,
    with_changes,
    with_fields,
)
from refcomp.ir.stmt import (
    Allocate,
    Block,
    BufferStore,
    For,
    IfThenElse,
    Origin,
    ParallelRegion,
    Stmt,
)
from refcomp.ir.structure import structurally_equal
from tests.strategies.funcs import runnable_funcs

i, j = Var("i", I64), Var("j", I64)
A, B = Buffer("A", F32, (IntImm(8, I64),)), Buffer("B", F32, (IntImm(8, I64),))
ORIGIN = Origin("C", "i")
STORE = BufferStore(A, (i,), BufferLoad(B, (j,)), ORIGIN)


def test_children_come_in_order_and_none_is_left_out():
    assert list(children(STORE)) == [i, STORE.value]
    branch = IfThenElse(i < j, STORE)
    assert list(children(branch)) == [branch.condition, STORE]


def test_map_children_returns_the_same_object_when_nothing_changes():
    for node in (STORE, Block((STORE,)), Select(i < j, i, j)):
        assert map_children(node, lambda child: child) is node


def test_map_children_changes_one_field_and_carries_the_rest():
    changed = map_children(STORE, lambda child: j if child is i else child)
    assert changed.indices == (j,)
    assert changed.origin is ORIGIN and changed.buffer is A and changed.value is STORE.value


def test_map_children_takes_only_those_of_a_class():
    branch = IfThenElse(i < j, STORE)
    loop = map_children(branch, lambda stmt: Block((stmt,)), only=Stmt)
    assert loop.condition is branch.condition and loop.then_case.stmts == (STORE,)
    swapped = map_children(STORE, lambda expr: IntImm(2, I64) if expr is i else expr, only=Expr)
    assert swapped.indices[0].value == 2 and swapped.value is STORE.value
    assert map_children(STORE, lambda stmt: Block(()), only=Stmt) is STORE
    block = Block((STORE, branch))
    assert map_children(block, lambda expr: j, only=Expr) is block


@pytest.mark.parametrize("only", [Node, Expr, Stmt])
def test_map_children_of_a_binary_node_maps_its_operands(only):
    root = Add(i, j)
    assert map_children(root, lambda node: node, only=only) is root
    swapped = map_children(root, {i: j, j: i}.get, only=only)
    assert (swapped is root) is (only is Stmt)
    assert only is Stmt or (swapped.a, swapped.b) == (j, i)


def test_with_fields_carries_the_origin():
    loop = For(i, IntImm(0, I64), j, "serial", STORE, ORIGIN)
    changed = with_fields(loop, kind="parallel")
    assert (changed.kind, changed.origin, changed.body) == ("parallel", ORIGIN, STORE)


def test_with_changes_keeps_what_does_not_change():
    loop = For(i, IntImm(0, I64), j, "serial", STORE, ORIGIN)
    assert with_changes(loop, extent=j, body=STORE) is loop
    assert with_changes(STORE, indices=(*STORE.indices,)) is STORE
    changed = with_changes(loop, extent=i, body=STORE)
    assert (changed.extent, changed.body, changed.origin) == (i, STORE, ORIGIN)


def test_walk_visits_parents_first_and_shared_nodes_once():
    shared = i + 1
    root = Add(shared, shared)
    assert list(walk(root)) == [root, shared, i, shared.b]


def test_walk_does_not_recurse():
    expr = i
    for _ in range(20_000):
        expr = Add(expr, i)
    assert sum(1 for _ in walk(expr)) == 20_001


def test_statements_come_parents_first_at_each_of_their_places():
    loop = For(j, IntImm(0, I64), i, "serial", STORE)
    root = Block((STORE, loop))
    assert list(statements_in(root)) == [root, STORE, loop, STORE]
    assert list(statements_in(root, without={loop})) == [root, STORE]


def test_statements_and_expressions_are_told_apart():
    loop = For(j, IntImm(0, I64), i, "serial", STORE)
    assert child_statements(loop) == (STORE,) and child_statements(STORE) == ()
    assert child_expressions(loop) == [loop.minimum, i]
    assert child_expressions(STORE) == [i, STORE.value]


def test_memoised_visits_a_shared_node_once():
    visits = []

    def visit(recurse, node):
        visits.append(node)
        return map_children(node, recurse)

    root = i
    for _ in range(60):
        root = Add(root, root)
    assert memoised(visit)(root) is root
    assert len(visits) == 61


def test_replacer_replaces_nodes_of_its_classes_children_first():
    replaced = []

    def drop(node):
        replaced.append(node)
        return node.a

    assert replacer({Add: drop})(Add(Add(i, j), Add(j, j))) is i
    assert [len(list(walk(node))) for node in replaced] == [3, 2, 3]
    assert replacer({Add: drop})(STORE) is STORE


def test_substitute_replaces_variables_and_keeps_what_does_not_use_them():
    branch = Block((STORE, BufferStore(A, (j,), STORE.value)))
    changed = substitute(branch, {i: j + 1})
    assert structurally_equal(changed.stmts[0].indices[0], j + 1)
    assert changed.stmts[1] is branch.stmts[1]
    assert substitute(branch, {}) is branch
    assert substitute(branch, {Var("i", I64): j}) is branch


def test_replace_buffers_redirects_every_mention():
    other = Buffer("T", F32, A.shape)
    task, count = Var("t", I64), Var("p", I64)
    region = ParallelRegion("r", (A, i), task, count, Allocate(A, STORE))
    changed = replace_buffers(region, {A: other})
    assert changed.captures[0] is other and changed.captures[1] is i
    assert changed.body.buffer is other and changed.body.body.buffer is other
    assert changed.body.body.value is STORE.value
    assert changed.body.body.origin is ORIGIN


def test_variables_and_buffers_come_in_order_of_appearance():
    assert variables_in(STORE) == (i, j)
    assert buffers_in(STORE) == (A, B)


@pytest.mark.search
@given(runnable_funcs("nested"))
def test_rewriting_to_the_same_changes_nothing(drawn: tuple[PrimFunc, object]):
    func, _ = drawn
    assert memoised(lambda recurse, node: map_children(node, recurse))(func.body) is func.body
