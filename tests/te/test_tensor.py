import pytest

import refcomp
from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Add, IntImm, Var
from refcomp.ir.stmt import THREAD_TAGS
from refcomp.ir.structure import structurally_equal
from refcomp.te.tensor import TensorRead, TensorSlice, as_dim, as_shape


def test_reading_makes_an_expression_of_the_tensors_dtype():
    a = refcomp.placeholder((4, 8), "float32", "A")
    k = refcomp.reduce_axis((0, 8), "k")
    read = a[1, k]
    assert isinstance(read, TensorRead) and read.dtype == F32
    assert isinstance(read.indices[0], IntImm) and read.indices[1] is k.var
    assert structurally_same(a(1, k), read)


def structurally_same(x, y):
    return bool(x == y)


@pytest.mark.parametrize(
    ("read", "count"),
    [
        (lambda a: a[()], "0 indices"),
        (lambda a: a[1, 2, 3], "3 indices"),
        (lambda a: a[1][2, 3], "3 indices"),
    ],
)
def test_wrong_number_of_indices(read, count):
    a = refcomp.placeholder((4, 8), name="A")
    with pytest.raises(UserError, match=f"A has 2 dimensions and is read with {count}\n"):
        read(a)


def test_indices_may_be_given_one_after_the_other():
    a = refcomp.placeholder((4, 8, 2), name="A")
    part = a[3]
    assert isinstance(part, TensorSlice)
    assert (part.ndim, part.dtype, [as_int(size) for size in part.shape]) == (2, F32, [8, 2])
    for read in (part[1][0], part[1, 0], part(1)(0), a[3, 1][0]):
        assert isinstance(read, TensorRead)
        assert structurally_equal(read, a[3, 1, 0])


@pytest.mark.parametrize(
    "use", [lambda x: x + 1, lambda x: 2 * x, lambda x: -x, refcomp.exp, lambda x: x.astype("f16")]
)
def test_a_read_that_lacks_indices_is_no_number(use):
    a = refcomp.placeholder((4, 8), name="A")
    with pytest.raises(UserError, match="read with 1 index\n(.|\n)*per dimension: A\\[i, j\\]"):
        use(a[3])
    with pytest.raises(UserError, match="read with 1 index\n"):
        refcomp.compute((4,), lambda i: a[i])


def test_a_read_that_lacks_indices_cannot_be_written_to():
    a = refcomp.placeholder((4, 8), name="A")
    with pytest.raises(UserError, match="tensor A cannot be written to"):
        a[3][1] = 2


def test_a_read_that_lacks_indices_cannot_be_iterated_over():
    a = refcomp.placeholder((4, 8), name="A")
    with pytest.raises(UserError, match="tensor A cannot be iterated over"):
        list(a[3])


@pytest.mark.parametrize("index", [1.5, True])
def test_an_index_must_be_an_integer(index):
    a = refcomp.placeholder((4,), name="A")
    with pytest.raises(UserError, match="is not an index or extent"):
        a[index]


def test_a_float_expression_is_no_index():
    a = refcomp.placeholder((4,), name="A")
    with pytest.raises(UserError, match=r"must be an integer, not f32(.|\n)*astype"):
        a[a[0]]


def test_smaller_integers_are_widened_as_indices():
    index = as_dim(Var("i", refcomp.as_dtype("int8")))
    assert index.dtype == I64


def test_shapes():
    n = refcomp.var("n")
    assert as_shape(3)[0].value == 3
    shape = as_shape((n, n + 1, 2))
    assert shape[0] is n and isinstance(shape[1], Add)
    with pytest.raises(UserError, match="a dimension cannot be negative: -1"):
        as_shape((4, -1))
    with pytest.raises(UserError, match=r"a symbolic dimension has dtype i32(.|\n)*var\(\"n\"\)"):
        as_shape((refcomp.var("n", "int32"),))


def test_a_whole_tensor_is_no_number_unless_it_has_rank_0():
    a = refcomp.placeholder((4, 4), name="A")
    scalar = refcomp.placeholder((), name="s")
    with pytest.raises(UserError, match=r"tensor A is used as a number(.|\n)*A\[i, j\]"):
        refcomp.exp(a)
    assert (a[0, 0] + scalar).dtype == F32


def test_axes_take_part_in_arithmetic():
    k = refcomp.reduce_axis((2, 8), "k")
    assert isinstance(k + 1, Add) and (k + 1).dtype == I64
    assert repr(k) == "reduction axis k" and k.minimum.value == 2 and k.extent.value == 6


def test_a_tensor_cannot_be_iterated_over():
    with pytest.raises(UserError, match="tensor A cannot be iterated over"):
        list(refcomp.placeholder((4,), name="A"))


def test_extents_do_not_depend_on_elements():
    a = refcomp.placeholder((4,), "int64", name="A")
    with pytest.raises(UserError, match="an extent depends on elements of A") as caught:
        refcomp.placeholder((0, a[0] + 1))
    assert "scalar argument" in str(caught.value)
    assert refcomp.reduce_axis((0, a[0] + 1)).name == "k"  # a loop may


@pytest.mark.parametrize("tag", THREAD_TAGS)
def test_thread_axes_have_a_tag_and_may_have_a_range(tag):
    free, ranged = refcomp.thread_axis(tag), refcomp.thread_axis((0, 64), tag)
    assert (free.kind, free.thread_tag, free.name) == ("thread", tag, tag)
    assert free.extent.value == 0 and ranged.extent.value == 64
    assert refcomp.thread_axis(32, tag=tag).extent.value == 32


def test_a_thread_axis_of_a_symbolic_number_of_threads():
    n = refcomp.var("n")
    assert refcomp.thread_axis((0, n), "blockIdx.x").extent == n


@pytest.mark.parametrize("tag", ["threadIdx", "threadidx.x"])
def test_a_near_thread_axis_is_suggested(tag):
    with pytest.raises(UserError, match=r"is not a thread axis(.|\n)*did you mean .*threadIdx\.x"):
        refcomp.thread_axis(tag)


@pytest.mark.parametrize("tag", ["", None, 3, "warp"])
def test_what_is_no_thread_axis(tag):
    with pytest.raises(
        UserError, match=r"is not a thread axis(.|\n)*use one of blockIdx.x, blockIdx.y"
    ):
        refcomp.thread_axis(tag)


@pytest.mark.parametrize("dom", [(1, 64), (0, 0), 0, (0, -3)])
def test_a_range_of_threads_begins_at_0_and_is_not_empty(dom):
    with pytest.raises(
        UserError, match=r"is not a range of threads for threadIdx.x(.|\n)*\(0, 64\)"
    ):
        refcomp.thread_axis(dom, "threadIdx.x")


def test_a_tensor_has_no_len():
    n = refcomp.var("n")
    tensor = refcomp.placeholder((n, 4), name="A")
    assert tensor
    with pytest.raises(UserError) as caught:
        len(tensor)
    assert str(caught.value) == (
        "tensor A has no len()\n"
        f"  --> {tensor.op.line}\n"
        '   |     tensor = refcomp.placeholder((n, 4), name="A")\n'
        "   |     ---------------------------------------------- A: f32[n, 4] is declared here\n"
        "  why: an extent may be symbolic, and len() is a number\n"
        "  what to do: use A.shape[0], or A.ndim for the number of dimensions"
    )


def test_extents_without_variables_are_numbers():
    eight = refcomp.convert(8)
    a = refcomp.placeholder((eight + 4, eight * eight // 3), name="A")
    assert [as_int(size) for size in a.shape] == [12, 21]
    assert as_int(refcomp.reduce_axis((0, eight - 2)).extent) == 6
    with pytest.raises(UserError, match="a dimension cannot be negative: -1"):
        refcomp.placeholder((eight - 9,))
    n = refcomp.var("n")
    assert str(refcomp.placeholder((n + 4,)).shape) == "(n + 4,)"
