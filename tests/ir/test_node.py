"""What a node class tells about itself."""

import copy
from dataclasses import FrozenInstanceError

import pytest

from refcomp.foundation.dtype import F32, I64
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.expr import Add, Call, Expr, IntImm, Let, Select, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import MADE_OF_NODES, Node, bound_by, child_fields, data_fields, node
from refcomp.ir.stmt import Block, For, IfThenElse, ParallelRegion


@pytest.mark.parametrize(
    ("cls", "children", "data"),
    [
        (Add, ("a", "b"), ()),
        (Call, ("args",), ("name", "dtype")),
        (Load, ("index", "predicate"), ("buffer",)),
        (Buffer, ("shape",), ("name", "dtype", "scope", "alignment")),
        (For, ("minimum", "extent", "body"), ("var", "kind")),
        (IfThenElse, ("condition", "then_case", "else_case"), ()),
        (Block, ("stmts",), ()),
        (
            PrimFunc,
            ("body", "requires"),
            ("name", "params", "outputs", "imports", "checks"),
        ),
    ],
)
def test_fields_are_children_or_data_and_origin_is_neither(cls, children, data):
    assert child_fields(cls) == children
    assert data_fields(cls) == data


def test_classes_of_one_child_in_each_field_are_known():
    assert {Add, Select} <= MADE_OF_NODES
    assert MADE_OF_NODES.isdisjoint({Block, Call, For, IfThenElse, IntImm, Load, Var})


def test_bound_by_lists_what_is_bound_in_order():
    n, i, task, count = (Var(name, I64) for name in ("n", "i", "task", "count"))
    buffer = Buffer("A", F32, (n,))
    loop = For(i, IntImm(0, I64), n, "serial", Block(()))
    region = ParallelRegion("r", (buffer,), task, count, loop)
    assert bound_by(loop) == (i,)
    assert bound_by(region) == (task, count)
    assert bound_by(PrimFunc("f", (buffer,), region)) == (buffer, n)
    assert bound_by(Let(i, n, i)) == (i,)
    assert bound_by(Block((loop,))) == ()


def test_nodes_cannot_be_changed_nor_given_other_attributes():
    one = IntImm(1, I64)
    with pytest.raises(FrozenInstanceError):
        one.value = 2
    with pytest.raises((AttributeError, TypeError)):
        one.color = "red"


def test_nodes_are_equal_by_identity_as_keys():
    a, b = IntImm(1, I64), IntImm(1, I64)
    assert len({a: 0, b: 0}) == 2
    block = Block(())
    assert block == block and block != Block(())


def test_repr_is_the_text_and_short_for_a_large_node():
    i = Var("i", I64)
    assert repr(Add(i, IntImm(1, I64))) == "i + 1"
    assert repr(Buffer("A", F32, (i,), alignment=64)) == "A: f32[i] align 64"
    shared = i
    for _ in range(60):
        shared = Add(shared, shared)
    assert repr(shared).endswith(" ...")


def test_a_node_class_of_another_room_is_a_node_like_any():
    @node
    class Twice(Expr):
        value: "Expr"
        dtype: "object"

    twice = Twice(IntImm(3, I64), I64)
    assert child_fields(Twice) == ("value",)
    assert repr(twice) == "Twice(i64, 3)"
    assert not Twice.by_identity and Twice.binds == ()
    assert issubclass(Twice, Node)


def test_annotations_that_are_no_text_are_refused():
    with pytest.raises(TypeError, match="Once: its module needs `from __future__"):

        @node
        class Once(Expr):
            value: Expr


def test_fields_are_never_assigned_or_deleted():
    node = Add(Var("i", I64), IntImm(1, I64))
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        node.a = node.b
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
        del node.a


def test_a_node_takes_its_fields_by_position_or_by_name():
    buffer = Buffer("A", F32, shape=(), alignment=64)
    assert (buffer.name, buffer.alignment) == ("A", 64)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        Add(IntImm(1, I64))
    with pytest.raises(TypeError, match="unexpected keyword argument 'c'"):
        Add(IntImm(1, I64), IntImm(1, I64), c=1)


def test_a_copy_has_the_same_fields():
    node = Buffer("A", F32, (IntImm(1, I64),))
    copied = copy.copy(node)
    assert copied is not node
    assert (copied.name, copied.dtype, copied.shape) == (node.name, F32, node.shape)
