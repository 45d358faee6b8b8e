"""Tags tell stages apart."""

from refcomp.te.tag import INJECTIVE
from refcomp.topi import tags
from refcomp.topi.convolution.conv2d import conv2d
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.normalization.softmax import softmax
from tests.strategies.operands import tensors


def test_tags_differ() -> None:
    names = [name for name in vars(tags) if name.isupper()]
    assert len({INJECTIVE, *(getattr(tags, name) for name in names)}) == len(names) + 1 == 7


def test_operators_tag_their_stages() -> None:
    padding = (1, 1, 1, 1)
    plain = conv2d(*tensors((1, 2, 5, 5), (3, 2, 3, 3)), padding=padding)
    assert plain.op.tag == tags.REDUCTION
    assert plain.op.inputs[0].op.tag == tags.PAD
    assert relu(plain).op.tag == INJECTIVE
    assert softmax(*tensors((2, 3))).op.inputs[0].op.tag == tags.SHARED
