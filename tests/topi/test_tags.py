"""Tags tell stages apart."""

from refcomp.topi import tags
from refcomp.topi.convolution.conv2d import conv2d, conv2d_nhwc
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.normalization.softmax import softmax
from tests.strategies.operands import tensors


def test_tags_differ() -> None:
    names = [name for name in vars(tags) if name.isupper()]
    assert len({getattr(tags, name) for name in names}) == len(names) == 6


def test_operators_tag_their_stages() -> None:
    padding = (1, 1, 1, 1)
    plain = conv2d(*tensors((1, 2, 5, 5), (3, 2, 3, 3)), padding=padding)
    assert plain.op.tag == tags.REDUCTION
    assert plain.op.inputs[0].op.tag == tags.PAD
    packed = conv2d_nhwc(*tensors((1, 5, 5, 2), (3, 3, 2, 3)))
    assert packed.op.tag == tags.CONV2D_NHWC
    assert relu(packed).op.tag == tags.INJECTIVE
    assert softmax(*tensors((2, 3))).op.inputs[0].op.tag == tags.SHARED
