"""The inventory of operators shows their declarations, and lacks none that users expect."""

from pathlib import Path

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.topi.inventory import InventoryEntry, inventory, page_of, to_markdown
from refcomp.topi.sources import OPERATOR_HOMES

_PAGE = Path(refcomp.__file__).parent / "topi" / "OPERATORS.md"
# What users of a classic operator library, of ONNX and of frameworks look for, by kind.
_EXPECTED = """
    elementwise and maths
        abs acos acosh asin asinh atan atanh ceil celu clip cos cosh elu erf exp exp2 expm1 floor
        gelu hard_sigmoid hard_swish identity isfinite isinf isnan leaky_relu log log10 log1p log2
        mish negative prelu reciprocal relu round rsqrt selu shrink sigmoid sign silu sin sinh
        softplus softsign sqrt square tan tanh thresholded_relu trunc
    arithmetic, comparison, logic and bits
        add add_n bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_to divide equal
        floor_divide floor_mod greater greater_equal left_shift less less_equal logical_and
        logical_not logical_or logical_xor maximum minimum mod multiply not_equal power right_shift
        subtract where
    reductions
        all any argmax argmin cumprod cumsum l1_norm l2_norm logsumexp max mean min prod std sum
        variance
    transforms
        arange concatenate depth_to_space einsum expand_dims flatten flip full gather
        gather_elements gather_nd layout_transform meshgrid mirror_pad one_hot pad repeat reshape
        reverse_sequence roll scatter scatter_add scatter_elements scatter_nd sequence_mask
        slice_like space_to_depth split squeeze stack strided_slice take tensordot tile transpose
        tril triu trilu
    search
        argsort argwhere nonzero searchsorted sort topk unique
    contraction
        batch_matmul bitserial_dense dense gemm matmul matmul_integer qlinear_matmul
        quantized_dense
    convolution
        bitserial_conv2d conv1d conv1d_transpose conv2d conv2d_backward_data
        conv2d_backward_weight conv2d_hwcn conv2d_integer conv2d_nchwc conv2d_nhwc
        conv2d_transpose conv2d_winograd conv3d conv3d_transpose deformable_conv2d
        depthwise_conv2d_nchw depthwise_conv2d_nhwc group_conv2d_nchw qlinear_conv2d
    pooling
        adaptive_avg_pool2d adaptive_max_pool2d avg_pool1d avg_pool2d avg_pool3d
        global_avg_pool2d global_lp_pool2d global_max_pool2d lp_pool2d max_pool1d max_pool2d
        max_pool3d max_pool_with_indices max_unpool
    normalization
        batch_norm group_norm hardmax instance_norm l2_normalize layer_norm log_softmax lrn
        rms_norm softmax
    recurrent cells and attention
        attention gru gru_cell lstm lstm_cell multi_head_attention rnn rnn_cell rotary_embedding
    images and boxes
        affine_grid crop_and_resize grid_sample multibox_prior multibox_transform_loc
        non_max_suppression resize resize2d roi_align roi_pool upsampling yolo_region yolo_reorg
    signals
        bartlett_window blackman_window dft fft hamming_window hann_window ifft irfft rfft stft
    losses
        binary_cross_entropy cross_entropy huber_loss kl_div l1_loss mse_loss nll_loss
        smooth_l1_loss
    random numbers
        bernoulli dropout philox random_integers random_normal random_uniform threefry
    conversion
        bitcast cast dequantize fake_quantize from_float8 pack_int4 quantize requantize to_float8
        unpack_int4
"""


def _expected() -> set[str]:
    """The names in the lines of _EXPECTED that are indented twice."""
    lines = [line for line in _EXPECTED.splitlines() if line.startswith(" " * 8)]
    return set(" ".join(lines).split())


def test_no_operator_that_users_expect_is_missing() -> None:
    assert len(_expected()) > 200
    assert sorted(_expected() - set(OPERATOR_HOMES)) == []


def test_the_page_in_the_documentation_lists_all_operators(request) -> None:
    page = to_markdown(inventory())
    if request.config.getoption("--update-golden"):
        _PAGE.write_text(page, encoding="utf-8")
    assert _PAGE.read_text(encoding="utf-8") == page, "if that is right: pytest --update-golden"


def test_every_operator_is_listed_with_a_sentence() -> None:
    found = inventory()
    assert [entry.name for entry in found] == list(OPERATOR_HOMES)
    assert all(len(entry.summary) > 10 and entry.summary.endswith(".") for entry in found)


def test_an_ellipsis_does_not_end_a_sentence() -> None:
    found = {entry.name: entry for entry in inventory()}
    expected = "Take the elements begin, begin + stride, ... before end along axes."
    assert found["strided_slice"].summary == expected


def test_what_may_be_left_out_is_in_brackets() -> None:
    found = {entry.name: entry for entry in inventory()}
    assert found["conv2d"].inputs == ("data", "weight", "[bias]")
    assert found["concatenate"].inputs[-1].endswith("...")
    assert found["softmax"] == InventoryEntry(
        name="softmax",
        family="normalization",
        inputs=("data",),
        attributes=("[axis]",),
        summary="Return exp(x - m) / sum of exp(x - m) along `axis`, where m is the maximum "
        "along it.",
    )


def test_a_page_has_a_table_for_each_family() -> None:
    page = to_markdown([entry for entry in inventory() if entry.name in ("relu", "softmax")])
    assert "## elementwise: Operators of one tensor that work element by element.\n" in page
    assert "| `relu` | `data` |  | Return max(x, 0) for each element x" in page
    assert page.count("| operator | inputs |") == 2


def test_unknown_operator_is_refused() -> None:
    with pytest.raises(UserError, match="unknown operator 'softmx'") as info:
        page_of("softmx")
    assert "softmax" in info.value.remedy
