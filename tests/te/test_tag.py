import threading

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.te.tag import tag_in_force

A = refcomp.placeholder((4,), name="A")


def computed(**given):
    return refcomp.compute((4,), lambda i: A[i] + 1.0, name="B", **given).op


def test_operations_inside_have_the_tag():
    with refcomp.tag_scope("conv"):
        inside = computed()
        extern = refcomp.extern((4,), [A], lambda i, o: refcomp.call_packed("f", i[0], o[0]))
        mine = computed(tag="mine")
    assert (inside.tag, extern.op.tag, mine.tag, computed().tag) == ("conv", "conv", "mine", "")


def test_a_decorator():
    @refcomp.tag_scope("sum")
    def describe():
        return computed()

    assert [describe().tag, describe().tag, computed().tag] == ["sum", "sum", ""]


def test_scopes_do_not_nest_and_end_with_an_error():
    message = r"tag_scope\('b'\) lies inside tag_scope\('a'\)"
    with pytest.raises(UserError, match=message), refcomp.tag_scope("a"), refcomp.tag_scope("b"):
        pass
    assert tag_in_force("") == ""
    with pytest.raises(UserError, match="3 is not a name for a tag"), refcomp.tag_scope(3):
        pass


def test_a_scope_is_of_one_thread():
    seen = []
    with refcomp.tag_scope("mine"):
        thread = threading.Thread(target=lambda: seen.append(computed().tag))
        thread.start()
        thread.join()
    assert seen == [""]


def test_attributes_stay_with_the_operation():
    op = computed(attrs={"layout": "NCHW"})
    assert op.attrs == {"layout": "NCHW"} and computed().attrs == {}
    s = refcomp.create_schedule(op)
    s.cache_read(A, "global", [op])
    assert s[op.outputs[0]].op.attrs == {"layout": "NCHW"}
