"""Classic programs that read schedules: axes, relations, attributes, placements and groups."""

import pytest

import refcomp as rc
from refcomp.schedule import Fuse, IterVar, Singleton, Split


def scaled(*shape: int):
    a = rc.placeholder(shape, name="A")
    return a, rc.compute(shape, lambda *i: a[i] * 2.0, name="T")


def test_split_is_a_relation_and_its_loops_are_the_leaves():
    _, t = scaled(16)
    s = rc.create_schedule(t.op)
    (i,) = t.op.axis
    outer, inner = s[t].split(i, factor=10)
    (split,) = s[t].relations
    assert isinstance(split, Split)
    assert (split.parent, split.outer, split.inner) == (i, outer, inner)
    assert (split.factor, split.nparts) == (10, None)
    assert s[t].leaf_iter_vars == (outer, inner)
    assert s[t].root_iter_vars == (i,)
    assert s[t].all_iter_vars == (i, outer, inner)
    assert (outer.dom.min.value, inner.dom.extent.value) == (0, 10)


def test_fuse_of_several_loops_makes_a_relation_for_each_pair():
    _, t = scaled(2, 3, 4)
    s = rc.create_schedule(t.op)
    fused = s[t].fuse(*t.op.axis)
    first, second = s[t].relations
    assert isinstance(first, Fuse) and isinstance(second, Fuse)
    assert second.fused is fused and first.fused in (second.outer, second.inner)
    assert s[t].leaf_iter_vars == (fused,)


def test_fuse_of_none_is_a_singleton():
    _, t = scaled()
    s = rc.create_schedule(t.op)
    single = s[t].fuse()
    (relation,) = s[t].relations
    assert isinstance(relation, Singleton) and relation.iter is single
    assert s[t].leaf_iter_vars == (single,) == s[t].all_iter_vars


def test_marks_are_attributes_of_axes():
    _, t = scaled(4, 8, 16, 32)
    s = rc.create_schedule(t.op)
    w, x, y, z = t.op.axis
    assert len(s[t].iter_var_attrs) == 0
    s[t].parallel(w)
    s[t].unroll(x)
    s[t].vectorize(z)
    attrs = s[t].iter_var_attrs
    assert set(attrs) == {w, x, z}
    assert attrs[w].iter_type == IterVar.Parallelized
    assert attrs[x].iter_type == IterVar.Unrolled
    assert attrs[z].iter_type == IterVar.Vectorized
    assert attrs[z].bind_thread is None and attrs[z].tensor_intrin is None
    with pytest.raises(KeyError):
        attrs[y]
    assert not hasattr(attrs, "pop")  # it is for reading only


def test_attributes_that_were_read_do_not_change():
    _, t = scaled(4, 8)
    s = rc.create_schedule(t.op)
    before = s[t].iter_var_attrs, s[t].leaf_iter_vars, s[t].relations
    s[t].unroll(t.op.axis[1])
    s[t].split(t.op.axis[0], 2)
    assert tuple(map(len, before)) == (0, 2, 0)


@pytest.mark.parametrize("tag", ["threadIdx.x", "blockIdx.y", "vthread"])
def test_bound_loop_has_its_thread_axis(tag):
    _, t = scaled(16)
    s = rc.create_schedule(t.op)
    thread = rc.thread_axis(tag)
    s[t].bind(t.op.axis[0], thread)
    (attr,) = s[t].iter_var_attrs.values()
    assert attr.bind_thread is thread and attr.iter_type == IterVar.DataPar
    assert attr.bind_thread.iter_type == IterVar.ThreadIndex
    assert attr.bind_thread.thread_tag == tag


def test_pragmas_and_prefetches_are_listed_by_axis():
    a, t = scaled(16, 16)
    s = rc.create_schedule(t.op)
    i, j = t.op.axis
    s[t].pragma(j, "auto_unroll_max_step", 8)
    s[t].pragma(j, "unroll_explicit", 0)
    s[t].prefetch(a, i, 2)
    attrs = s[t].iter_var_attrs
    assert attrs[j].pragma_keys == ("auto_unroll_max_step", "unroll_explicit")
    assert attrs[j].pragma_values == (8, 0)
    assert attrs[i].pragma_keys == ()
    assert (attrs[i].prefetch_data, attrs[i].prefetch_offset) == ((a,), (2,))


def test_storage_alignment_is_an_attribute_of_its_dimension():
    a = rc.placeholder((8, 8), name="A")
    b = rc.compute((8, 8), lambda i, j: a[i, j] + 1.0, name="B")
    c = rc.compute((8, 8), lambda i, j: b[j, i], name="C")
    s = rc.create_schedule(c)
    s[b].storage_align(b.op.axis[0], 4, 1)
    attr = s[b].iter_var_attrs[b.op.axis[0]]
    assert (attr.dim_align_factor, attr.dim_align_offset) == (4, 1)
    assert b.op.axis[1] not in s[b].iter_var_attrs


def test_tensorized_loop_has_its_intrinsic():
    a = rc.placeholder((4,), name="a")
    b = rc.compute((4,), lambda i: a[i] * 2.0, name="b")
    intrin = rc.decl_tensor_intrin(
        b.op, lambda ins, outs: rc.call_extern("int32", "f", outs[0], ins[0])
    )
    _, t = scaled(16)
    s = rc.create_schedule(t.op)
    outer, inner = s[t].split(t.op.axis[0], factor=4)
    s[t].tensorize(inner, intrin)
    attr = s[t].iter_var_attrs[inner]
    assert attr.iter_type == IterVar.Tensorized and attr.tensor_intrin is intrin
    assert outer not in s[t].iter_var_attrs


def two_stages():
    a, b = scaled(8)
    c = rc.compute((8,), lambda i: b[i] - 1.0, name="C")
    return a, b, c, rc.create_schedule(c)


def test_placement_can_be_read():
    _, b, c, s = two_stages()
    assert (s[b].attach_type, s[b].attach_stage, s[b].attach_ivar) == ("root", None, None)
    assert (s[b].is_output, s[c].is_output, s[b].scope) == (False, True, None)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].set_scope("local")
    assert s[b].attach_type == "scope" and s[b].attach_ivar is c.op.axis[0]
    assert s[b].attach_stage.op is c.op and s[b].scope == "local"
    s[b].compute_inline()
    assert (s[b].attach_type, s[b].attach_stage) == ("inline", None)


def test_update_of_a_scan_is_attached_to_the_scan():
    x = rc.placeholder((5, 3), name="X")
    state = rc.placeholder((5, 3), name="state")
    init = rc.compute((1, 3), lambda t, i: x[t, i], name="init")
    half = rc.compute((5, 3), lambda t, i: state[t - 1, i] / 2.0, name="half")
    update = rc.compute((5, 3), lambda t, i: half[t, i] + x[t, i], name="update")
    scan = rc.scan(init, update, state, inputs=[x], name="S")
    s = rc.create_schedule(scan)
    assert s[update].attach_type == "scan_update" and s[half].attach_type == "scope"
    assert s[update].attach_stage.op is scan.op and s[init].attach_type == "root"
    assert s[update].attach_ivar.iter_type == IterVar.Ordered


def test_origin_is_the_operation_of_the_user():
    a, b, _, s = two_stages()
    local = s.cache_write(b, "local")
    assert s[b].origin_op is b.op and s[b].op is not b.op
    assert s[local].origin_op is s[local].op is local.op
    assert s[a].origin_op is a.op


def test_stages_are_found_by_present_and_original_operations():
    a, b, c, s = two_stages()
    original = b.op
    local = s.cache_write(b, "local")
    assert s.stage_map[original].stage is s.stage_of(b)
    assert s.stage_map[s[b].op].stage is s.stage_of(b)
    assert s.stage_map[local.op].op is local.op
    assert s.outputs == (c.op,)
    assert [stage.op for stage in s.stages] == [a.op, local.op, s[b].op, c.op]


def test_group_of_a_stage_is_the_smallest_and_then_the_newest():
    a = rc.placeholder((8,), name="A")
    b = rc.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = rc.compute((8,), lambda i: b[i] * 2.0, name="C")
    d = rc.compute((8,), lambda i: c[i] - 1.0, name="D")
    s = rc.create_schedule(d)
    assert s[b].group is None and s.groups == []
    inner = s.create_group(outputs=b, inputs=a)
    outer = s.create_group(outputs=c, inputs=a)
    assert s.groups == [inner, outer]
    assert s[b].group is inner and s[c].group is outer and s[d].group is None
    again = s.create_group(outputs=b, inputs=a)
    assert s[b].group is again


def test_reduction_is_read_by_classic_names():
    a = rc.placeholder((4, 8), name="A")
    k = rc.reduce_axis((0, 8), name="k")
    b = rc.compute((4,), lambda i: rc.sum(a[i, k], axis=k, where=k < 5), name="B")
    (body,) = b.op.body
    assert body.axis == b.op.reduce_axis == (k,) and body.value_index == 0
    assert str(body.source) == "(TensorRead(A, i, k),)"
    assert str(body.condition) == "k < 5"
    assert str(body.combiner.result[0]) == "lhs0 + rhs0"
    assert body.combiner.identity_element[0].value == 0.0
    assert k.iter_type == IterVar.CommReduce
    assert b.op.input_tensors == (a,) and b.op.num_outputs == 1


def test_opaque_axes_say_so():
    a = rc.placeholder((4,), name="A")
    b = rc.extern((4,), [a], lambda i, o: rc.call_extern("int32", "f", o[0], i[0]), name="B")
    assert b.op.axis[0].iter_type == IterVar.Opaque
    assert rc.create_schedule(b)[b].leaf_iter_vars == b.op.axis
