"""Layers of YOLO detectors: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.detection import yolo
from tests.strategies.operands import assert_same, floats, run_te, tensors


def _darknet_reorg(data, stride):
    """Darknet's loops over the buffers, one image."""
    channels, height, width = data.shape
    parts = channels // stride**2
    source, result = data.ravel(), np.zeros(data.size, data.dtype)
    for k, y, x in np.ndindex(*data.shape):
        block, part = divmod(k, parts)
        row, column = y * stride + block // stride, x * stride + block % stride
        place = column + width * stride * (row + height * stride * part)
        result[x + width * (y + height * k)] = source[place]
    return result.reshape(channels * stride**2, height // stride, width // stride)


@pytest.mark.parametrize(("stride", "shape"), [(1, (2, 3, 3)), (2, (8, 4, 2)), (3, (9, 3, 6))])
def test_reorg_is_darknets(stride, shape):
    data = floats(0, 1, *shape)
    wanted = _darknet_reorg(data[0], stride)[None]
    assert_same(run_te(yolo.yolo_reorg, data, stride=stride), wanted)
    assert_same(yolo.yolo_reorg_numpy(data, stride=stride), wanted)


def test_region_by_hand():
    data = np.array([0, 0, 5, 6, 0, 1, 1], np.float32).reshape(1, 7, 1, 1)
    made = run_te(yolo.yolo_region, data, anchors=1, classes=2)
    np.testing.assert_allclose(made.ravel(), [0.5, 0.5, 5, 6, 0.5, 0.5, 0.5])
    raw = run_te(yolo.yolo_region, data, anchors=1, classes=2, softmax=False)
    np.testing.assert_allclose(raw.ravel(), [0.5, 0.5, 5, 6, 0.5, 1, 1])
    behind = run_te(yolo.yolo_region, data, anchors=1, classes=2, background=True)
    np.testing.assert_allclose(behind.ravel()[4:].sum(), 1, rtol=1e-6)


def test_large_scores_do_not_overflow():
    data = np.full((1, 7, 1, 1), 1000, np.float32)
    made = run_te(yolo.yolo_region, data, anchors=1, classes=2)
    assert made.ravel().tolist() == [1, 1, 1000, 1000, 1, 0.5, 0.5]


def test_yolov3_keeps_extents():
    data = np.zeros((1, 12, 1, 1), np.float32)
    data[:, 2::6] = 7
    made = run_te(yolo.yolov3_yolo, data, anchors=2, classes=1).reshape(2, 6)
    assert made.tolist() == [[0.5, 0.5, 7, 0, 0.5, 0.5]] * 2


@pytest.mark.parametrize(
    ("shape", "stride", "message"),
    [
        ((4, 2, 2), 2, "yolo_reorg: the data has 3 dimensions"),
        ((1, 6, 2, 2), 2, "cannot divide 6 x 2 x 2 elements by the stride 2"),
        ((1, 4, 3, 2), 2, "cannot divide 4 x 3 x 2 elements by the stride 2"),
        ((1, 0, 2, 2), 2, "cannot divide 0 x 2 x 2 elements by the stride 2"),
        ((1, 4, 2, 2), 0, "cannot divide 4 x 2 x 2 elements by the stride 0"),
        ((1, 4, var("h"), 2), 2, "an extent of yolo_reorg must be a constant"),
    ],
)
def test_ill_formed_reorganizations_are_refused(shape, stride, message):
    with pytest.raises(UserError, match=message):
        yolo.yolo_reorg(*tensors(shape), stride=stride)


@pytest.mark.parametrize("operator", [yolo.yolo_region, yolo.yolov3_yolo])
def test_ill_formed_layers_are_refused(operator):
    name = operator.__name__
    with pytest.raises(UserError, match=f"{name}: the number of channels is 6 instead of 14"):
        operator(*tensors((1, 6, 2, 2)), anchors=2, classes=2)
    with pytest.raises(UserError, match=f"{name} cannot have 0 anchors, 2 classes"):
        operator(*tensors((1, 6, 2, 2)), anchors=0, classes=2)
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        operator(*tensors((1, 6, 2, 2), dtype="int32"), anchors=1, classes=1)
    with pytest.raises(UserError, match=f"{name}: the data has 3 dimensions"):
        operator(*tensors((6, 2, 2)), anchors=1, classes=1)
