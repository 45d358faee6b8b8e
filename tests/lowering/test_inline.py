import refcomp
from refcomp.ir.rewrite import walk
from refcomp.lowering.inline import inline_reads
from refcomp.te.tensor import TensorRead


def _reads(expr):
    return sorted({n.tensor.name for n in walk(expr) if isinstance(n, TensorRead)})


def test_reads_become_the_expression_at_their_indices():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] * 2.0, name="B")
    c = refcomp.compute((7,), lambda j: b[j + 1], name="C")
    inlined = inline_reads(c.op.body[0], [b.op])
    j = c.op.axis[0].var
    assert inlined == a[j + 1] * 2.0


def test_chains_are_inlined_to_the_end():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] * 2.0, name="B")
    c = refcomp.compute((8,), lambda i: b[i] + b[i], name="C")
    d = refcomp.compute((8,), lambda i: c[i] - a[i], name="D")
    assert _reads(inline_reads(d.op.body[0], [b.op, c.op])) == ["A"]
    assert _reads(inline_reads(d.op.body[0], {c.op})) == ["A", "B"]


def test_reductions_are_inlined_into():
    a = refcomp.placeholder((4, 8), name="A")
    b = refcomp.compute((4, 8), lambda i, j: a[i, j] * 2.0, name="B")
    k = refcomp.reduce_axis((0, 8), "k")
    c = refcomp.compute((4,), lambda i: refcomp.sum(b[i, k], axis=k, where=b[i, k] > 0), name="C")
    assert _reads(inline_reads(c.op.body[0], [b.op])) == ["A"]


def test_nothing_to_inline_gives_the_same_object():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] * 2.0, name="B")
    assert inline_reads(b.op.body[0], []) is b.op.body[0]


def test_a_chain_that_doubles_stays_small():
    tensor = refcomp.placeholder((8,), name="A")
    inlined = []
    for _ in range(40):  # 2^40 reads, were shared subtrees copied
        tensor = refcomp.compute((8,), lambda i, t=tensor: t[i] + t[i])
        inlined.append(tensor.op)
    last = refcomp.compute((8,), lambda i: tensor[i] * 1.0)
    assert sum(1 for _ in walk(inline_reads(last.op.body[0], inlined))) < 200
