import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import Unsupported, UserError


def _matmul():
    a, b = (refcomp.placeholder((8, 8), name=name) for name in "AB")
    k = refcomp.reduce_axis((0, 8), "k")
    c = refcomp.compute((8, 8), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = refcomp.compute((8, 8), lambda i, j: c[i, j] + a[i, j], name="D")
    return refcomp.create_schedule(d.op), a, b, c, d


def test_the_readers_named_read_the_copy_and_others_do_not():
    s, a, b, c, d = _matmul()
    copy = s.cache_read(a, "shared", [c])
    assert s[c].op.inputs == (copy, b) and s[d].op.inputs == (c, a)
    assert [stage.name for stage in s.stages] == ["A", "A.shared", "B", "C", "D"]
    assert s[copy].stage.memory.scope == "shared" and s[copy].op.inputs == (a,)
    assert s[copy].op.line.startswith(__file__)


def test_tensors_and_axes_mean_what_they_meant():
    s, a, _, c, _ = _matmul()
    op, axes = c.op, c.op.axis
    s.cache_read(a, "shared", [c])
    assert s[c].stage is s[op].stage and s[c].op is not op
    assert s[c].op.axis == axes and s[c].op.outputs == (c,)
    s[c].split(axes[0], factor=2)


def test_copies_of_copies_and_of_one_name():
    s, a, _, c, d = _matmul()
    first = s.cache_read(a, "shared", [c.op])
    s.cache_read(a, "shared", d)
    s.cache_read(first, "local", [c])
    names = [stage.name for stage in s.stages if stage.name.startswith("A")]
    assert names == ["A", "A.shared.1", "A.shared", "A.shared.local"]


def test_a_stage_that_does_not_read():
    s, _, b, c, d = _matmul()
    with pytest.raises(UserError, match=r"cannot make a copy of B(.|\n)*stage D does not read it"):
        s.cache_read(b, "shared", [c, d])
    with pytest.raises(UserError, match="no stage is named that reads it"):
        s.cache_read(b, "shared", [])
    with pytest.raises(UserError, match="cannot copy 3: it is not a tensor"):
        s.cache_read(3, "shared", [c])
    assert len(s.stages) == 4 and not s.steps


def test_a_copy_of_an_inlined_stage_computes_its_elements():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((4,), lambda i: b[i] + 1.0, name="C")
    s = refcomp.create_schedule(c)
    s[b].compute_inline()
    copy = s.cache_read(b, "local", [c])
    s[copy].compute_at(s[c], c.op.axis[0])
    text = str(refcomp.lower(s, [a, c]))
    assert "alloc B.local: f32[1]" in text
    assert "B.local[0] = A[i] + 1.0f32" in text
    assert "B:" not in text  # the stage itself has no memory


def test_a_step_tells_output_scope_and_readers():
    s, a, _, c, _ = _matmul()
    s.cache_read(a, "shared", [c])
    assert str(s.steps[0]) == "s[A].cache_read(0, shared, [s[C]])"


def test_a_refused_copy_leaves_no_stage_behind():
    x = refcomp.placeholder((4, 3), name="X")
    state = refcomp.placeholder((4, 3), name="state")
    init = refcomp.compute((1, 3), lambda _, i: x[0, i], name="init")
    update = refcomp.compute((4, 3), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    total = refcomp.scan(init, update, state, inputs=[x], name="S")
    s = refcomp.create_schedule(total)
    before = [stage.name for stage in s.stages]
    with pytest.raises(Unsupported, match="scan S cannot read a copy of X"):
        s.cache_read(x, "local", [update, total])
    assert [stage.name for stage in s.stages] == before and not s.steps
    assert s[update].op.inputs == (state, x)


def _scaled(columns):
    a = refcomp.placeholder((3, columns), name="A")
    b = refcomp.compute((3, columns), lambda i, j: a[i, j] * 2.0, name="B")
    return refcomp.create_schedule(b), a, b


@pytest.mark.parametrize("columns", [8, 7, 3])
def test_panels_hold_columns_and_zeros_behind_the_last(columns):
    s, a, b = _scaled(columns)
    copy = s.cache_read(a, "global", [b], panel=4)
    count = -(-columns // 4)
    assert [extent.value for extent in copy.shape] == [count, 3, 4]
    given = np.arange(3 * columns, dtype=np.float32).reshape(3, columns)
    held, result = refcomp.oracle.evaluate([copy, s[b].op.outputs[0]], {a: given})
    padded = np.pad(given, ((0, 0), (0, count * 4 - columns)))
    np.testing.assert_array_equal(held, padded.reshape(3, count, 4).transpose(1, 0, 2))
    np.testing.assert_array_equal(result, given * 2)
    func = refcomp.lower(s, [a, b], "f")
    module = refcomp.build_functions([func], target="interp")
    output = refcomp.array(np.zeros_like(given))
    module["f"](refcomp.array(given), output)
    np.testing.assert_array_equal(output.asnumpy(), given * 2)


def test_a_step_tells_the_panel():
    s, a, b = _scaled(8)
    s.cache_read(a, "global", [b], panel=4)
    assert str(s.steps[0]) == "s[A].cache_read(0, global, [s[B]], panel=4)"


@pytest.mark.parametrize("panel", [-1, 2.0, True, 0.0, None, "", np.array([4, 5])], ids=repr)
def test_a_panel_is_a_number_of_columns(panel):
    s, a, b = _scaled(8)
    with pytest.raises(UserError, match=r"the panel is .*\n(.|\n)*use an int"):
        s.cache_read(a, "global", [b], panel=panel)
    assert not s.steps


def test_panels_need_columns_of_a_known_number():
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = refcomp.create_schedule(b)
    with pytest.raises(UserError, match="panels need a last dimension whose extent is a constant"):
        s.cache_read(a, "global", [b], panel=4)
    scalar = refcomp.placeholder((), name="S")
    c = refcomp.compute((3,), lambda i: scalar[()] + i, name="C")
    s = refcomp.create_schedule(c)
    with pytest.raises(UserError, match="panels need a last dimension"):
        s.cache_read(scalar, "global", [c], panel=4)


def test_an_extern_operation_cannot_read_panels():
    a = refcomp.placeholder((8,), name="A")
    c = refcomp.extern((8,), [a], lambda ins, outs: refcomp.call_packed("f", ins[0], outs[0]))
    s = refcomp.create_schedule(c)
    with pytest.raises(UserError, match="reads a buffer whose order it knows"):
        s.cache_read(a, "global", [c], panel=4)
