"""Blocks of pixels to channels and batches, and back: known answers, round trips, refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.movement import blocks
from tests.strategies.operands import run_te, tensors

IMAGE = np.arange(16, dtype=np.int32).reshape(1, 2, 2, 4)


def test_orders_of_channels():
    dcr = run_te(blocks.space_to_depth, IMAGE, block_size=2)
    assert dcr[0, :, 0, 0].tolist() == [0, 8, 1, 9, 4, 12, 5, 13]
    crd = run_te(blocks.space_to_depth, IMAGE, block_size=2, mode="CRD")
    assert crd[0, :, 0, 0].tolist() == [0, 1, 4, 5, 8, 9, 12, 13]
    for mode, mixed in (("DCR", dcr), ("CRD", crd)):
        back = run_te(blocks.depth_to_space, mixed, block_size=2, mode=mode)
        assert back.tolist() == IMAGE.tolist()


def test_batches_go_there_and_back():
    data = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
    given = {"block_shape": [2], "pad_before": [1], "pad_value": 7}
    mixed = run_te(blocks.space_to_batch_nd, data, is_symbolic=False, **given)
    assert mixed.shape == (4, 2, 2) and mixed[0, 0].tolist() == [7, 7]
    given = {"block_shape": [2], "crop_before": [1]}
    back = run_te(blocks.batch_to_space_nd, mixed, is_symbolic=False, **given)
    assert back.tolist() == data.tolist()


def test_ill_formed_images_are_refused():
    image, symbolic = tensors((1, 3, 4, 5), (1, 3, var("n"), 5))
    with pytest.raises(UserError, match="cannot divide 4 x 5 pixels by blocks of 2"):
        blocks.space_to_depth(image, block_size=2)
    with pytest.raises(UserError, match="cannot divide 3 channels by blocks of 2 x 2"):
        blocks.depth_to_space(image, block_size=2)
    for operator in (blocks.space_to_depth, blocks.depth_to_space):
        name = operator.__name__
        with pytest.raises(UserError, match=f"{name} has the block size 0"):
            operator(image, block_size=0)
        with pytest.raises(UserError, match=f"{name} does not know the mode 'DRC'"):
            operator(image, block_size=1, mode="DRC")
        with pytest.raises(UserError, match=f"{name}: height must be a constant"):
            operator(symbolic, block_size=1)
        with pytest.raises(UserError, match=f"{name}: data has 1 dimensions instead of 4"):
            operator(*tensors((3,)), block_size=1)


def test_ill_formed_batches_are_refused():
    data, symbolic = tensors((3, 3), (var("n"), 3))
    with pytest.raises(UserError, match="cannot divide 3 elements of axis 1 by blocks of 2"):
        blocks.space_to_batch_nd(data, block_shape=[2])
    with pytest.raises(UserError, match=r"cannot divide a batch of 3 by blocks of \(2,\)"):
        blocks.batch_to_space_nd(data, block_shape=[2])
    with pytest.raises(UserError, match="cannot remove 2 and 2 of the 3 elements of axis 1"):
        blocks.batch_to_space_nd(data, block_shape=[1], crop_before=[2], crop_after=[2])
    for operator in (blocks.space_to_batch_nd, blocks.batch_to_space_nd):
        name = operator.__name__
        with pytest.raises(UserError, match=f"{name} has 2 blocks and margins of 2 and 2"):
            operator(data, block_shape=[1, 1])
        with pytest.raises(UserError, match=rf"{name} cannot use blocks of \(0,\)"):
            operator(data, block_shape=[0])
        with pytest.raises(UserError, match=f"{name}: the batch must be a constant"):
            operator(symbolic, block_shape=[1])
        with pytest.raises(UserError, match=f"{name} is applied to a int"):
            operator(3, block_shape=[])
