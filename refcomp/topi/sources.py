"""Where each public name of topi is defined: operators by family, then schedules.

A file is imported when one of its names is used first: a program needs few of them.
"""

SOURCES = {
    # Elementwise: of one tensor
    "elementwise.activations": "clip identity relu sigmoid tanh",
    "elementwise.rectifiers": (
        "celu elu leaky_relu prelu relu6 selu shrink thresholded_relu"
    ),
    "elementwise.gates": (
        "gelu hard_sigmoid hard_swish log_sigmoid mish silu softplus softsign swish"
    ),
    "elementwise.exponentials": "exp exp10 exp2 expm1 log log10 log1p log2",
    "elementwise.powers": "erf reciprocal rsqrt sqrt square",
    "elementwise.trigonometry": "acos asin atan cos sin tan",
    "elementwise.hyperbolic": "acosh asinh atanh cosh sinh",
    "elementwise.rounding": "abs ceil floor negative round sign trunc",
    "elementwise.predicates": "bitwise_not clz isfinite isinf isnan logical_not popcount",
    #
    # Broadcast: of two or more tensors, element by element
    "broadcast.arithmetic": "add divide multiply scale squared_difference subtract",
    "broadcast.division": "floor_divide floor_mod mod trunc_divide",
    "broadcast.powers": "atan2 copysign hypot logaddexp power",
    "broadcast.comparison": "equal greater greater_equal less less_equal not_equal",
    "broadcast.bits": (
        "bitwise_and bitwise_or bitwise_xor left_shift "
        "logical_and logical_or logical_xor right_shift"
    ),
    "broadcast.choice": "fma maximum minimum where",
    "broadcast.variadic": "add_n max_n mean_n min_n",
    "broadcast.repetition": "broadcast_like broadcast_to",
    #
    # Reduction: along axes
    "reduction.sums": "log_sum logsumexp prod sum sum_square",
    "reduction.norms": "l1_norm l2_norm",
    "reduction.moments": "mean std variance",
    "reduction.cumulative": "cumprod cumsum",
    "reduction.collapse": "collapse_sum",
    "reduction.extrema": "argmax argmin max min",
    "reduction.logical": "all any",
    #
    # Movement: elements are moved, not changed
    "movement.scatter": "index_put scatter scatter_add scatter_elements scatter_nd",
    "movement.sparse": "sparse_to_dense",
    "movement.transform": "concatenate flatten reshape split transpose",
    "movement.axes": "expand_dims moveaxis squeeze stack swap_axes",
    "movement.shape_of": "shape_of",
    "movement.slices": "flip reverse_sequence slice_like strided_slice",
    "movement.constants": "arange eye full full_like linspace ones ones_like zeros zeros_like",
    "movement.blocks": "batch_to_space_nd depth_to_space space_to_batch_nd space_to_depth",
    "movement.gather": "embedding gather gather_elements index_select take",
    "movement.gather_nd": "gather_nd",
    "movement.grids": "meshgrid",
    "movement.layouts": "layout_transform",
    "movement.masks": "diagonal matrix_set_diag one_hot sequence_mask tril trilu triu",
    "movement.padding": "mirror_pad pad",
    "movement.repetition": "repeat roll tile",
    #
    # Search: by the values of elements
    "search.counting": "bincount histogram isin",
    "search.decision_trees": "tree_leaves",
    "search.median": "median",
    "search.nonzero": "argwhere compress nonzero",
    "search.positions": "invert_permutation unravel_index",
    "search.searchsorted": "bucketize searchsorted",
    "search.sort": "argsort sort topk",
    "search.unique": "unique",
    #
    # Contraction: products that are summed
    "contraction.binary": "binarize_pack binary_dense",
    "contraction.bitserial": "bitpack bitserial_dense",
    "contraction.csr": "csrmm sparse_dense",
    "contraction.csr_transposed": "csr_sampled_matmul csrmm_transposed",
    "contraction.dense": "gemm matmul",
    "contraction.determinant": "det",
    "contraction.einsum": "einsum outer tensordot",
    "contraction.fully_connected": "batch_matmul dense",
    "contraction.packed_dense": "dense_pack",
    "contraction.quantized": "matmul_integer qlinear_matmul quantized_dense",
    "contraction.quantized_packed_dense": "quantized_dense_pack",
    #
    # Convolution
    "convolution.bitserial_conv2d": "bitserial_conv2d",
    "convolution.conv1d": "conv1d",
    "convolution.conv2d": "conv2d conv2d_nhwc",
    "convolution.conv2d_gradients": "conv2d_backward_data conv2d_backward_weight",
    "convolution.conv2d_im2col": "conv2d_im2col",
    "convolution.conv2d_layouts": "conv2d_hwcn group_conv2d_nchw",
    "convolution.conv2d_nchwc": "conv2d_nchwc",
    "convolution.conv2d_nchwc_winograd": (
        "conv2d_nchwc_winograd conv2d_nchwc_winograd_weight"
    ),
    "convolution.conv2d_winograd": (
        "conv2d_winograd conv2d_winograd_weight_transform"
        " conv2d_winograd_without_weight_transform"
    ),
    "convolution.conv3d": "conv3d",
    "convolution.conv_transpose": "conv1d_transpose conv2d_transpose conv3d_transpose",
    "convolution.correlation": "correlation",
    "convolution.deformable_conv2d": "deformable_conv2d",
    "convolution.depthwise_conv2d": "depthwise_conv2d_nchw depthwise_conv2d_nhwc",
    "convolution.depthwise_conv2d_nchwc": "depthwise_conv2d_nchwc",
    "convolution.depthwise_gradients": (
        "depthwise_conv2d_backward_input_nhwc depthwise_conv2d_backward_weight_nhwc"
    ),
    "convolution.quantized_conv2d": "conv2d_integer qlinear_conv2d",
    "convolution.quantized_conv2d_nchwc": "quantized_conv2d_nchwc",
    "convolution.quantized_depthwise_conv2d_nchwc": "quantized_depthwise_conv2d_nchwc",
    #
    # Pooling: windows that are reduced
    "pooling.gradients": "avg_pool2d_grad max_pool2d_grad",
    "pooling.indices": "max_pool_with_indices max_unpool",
    "pooling.pool1d": "avg_pool1d lp_pool1d max_pool1d",
    "pooling.pool2d": "avg_pool2d lp_pool2d max_pool2d",
    "pooling.pool3d": "avg_pool3d lp_pool3d max_pool3d",
    "pooling.adaptive_pool": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool2d adaptive_max_pool3d"
    ),
    "pooling.global_pool": (
        "global_avg_pool1d global_avg_pool2d global_avg_pool3d global_lp_pool1d global_lp_pool2d "
        "global_lp_pool3d global_max_pool1d global_max_pool2d global_max_pool3d"
    ),
    #
    # Normalization
    "normalization.batch_norm": "batch_norm",
    "normalization.group_norm": "group_norm instance_norm",
    "normalization.batch_norm_train": "batch_norm_train",
    "normalization.layer_norm": "layer_norm rms_norm",
    "normalization.log_softmax": "hardmax log_softmax softmin",
    "normalization.lrn": "lrn",
    "normalization.norms": "l2_normalize lp_normalize mean_variance_normalization",
    "normalization.softmax": "softmax",
    #
    # Recurrent cells and attention
    "recurrent.gru": "gru gru_cell",
    "recurrent.lstm": "lstm lstm_cell",
    "recurrent.rnn": "rnn rnn_cell",
    "transformer.blocked": "blocked_attention",
    "transformer.multi_head": "multi_head_attention",
    "transformer.rotary": "rotary_embedding",
    "transformer.scaled_dot_product": "attention scaled_dot_product_attention",
    #
    # Losses
    "losses.regression": "huber_loss l1_loss mse_loss smooth_l1_loss",
    "losses.likelihood": (
        "binary_cross_entropy binary_cross_entropy_with_logits hinge_loss kl_div"
    ),
    "losses.classification": "cross_entropy nll_loss",
    "losses.embedding": "cosine_embedding_loss",
    #
    # Vision: images and boxes
    "image.color": "rgb_to_grayscale rgb_to_yuv yuv_to_rgb",
    "image.columns": "col2im im2col",
    "image.crop": "center_crop_pad crop_and_resize",
    "image.grid_sample": "affine_grid grid_sample",
    "image.morphology": "dilation2d",
    "image.resize": "resize",
    "image.resize_images": "resize1d resize2d resize3d upsampling upsampling3d",
    "detection.all_class_nms": "all_class_non_max_suppression",
    "detection.boxes": "box_decode box_encode box_iou",
    "detection.multibox": "multibox_prior multibox_transform_loc",
    "detection.multibox_detection": "multibox_detection",
    "detection.nms": "get_valid_counts non_max_suppression",
    "detection.proposal": "proposal",
    "detection.roi": "roi_align roi_pool",
    "detection.yolo": "yolo_region yolo_reorg yolov3_yolo",
    #
    # Signals
    "signal.fourier": "dft fft fft2d ifft ifft2d irfft rfft",
    "signal.short_time": "istft stft",
    "signal.windows": (
        "bartlett_window blackman_window hamming_window hann_window mel_weight_matrix"
    ),
    #
    # Random numbers
    "random_numbers.counters": "philox threefry",
    "random_numbers.keys": "threefry_generate threefry_key threefry_split",
    "random_numbers.distributions": (
        "bernoulli dropout random_integers random_normal random_uniform"
    ),
    "random_numbers.selections": "multinomial random_gumbel random_permutation",
    #
    # Conversion: casts and quantization
    "conversion.casts": "bitcast cast cast_like",
    "conversion.narrow_floats": "from_float4 from_float6 from_float8 to_float4 to_float6 to_float8",
    "conversion.packing": "pack_int4 unpack_int4",
    "conversion.powers_of_two": "from_float8_e8m0 to_float8_e8m0",
    "conversion.quantization": (
        "dequantize dynamic_quantize_linear fake_quantize quantize requantize"
    ),
}
# Schedules are not operators.
SCHEDULES = {
    "generic": (
        "schedule_adaptive_pool schedule_batch_matmul schedule_broadcast "
        "schedule_conv2d_nchw schedule_conv2d_nchwc schedule_conv2d_nhwc "
        "schedule_dense schedule_depthwise_conv2d_nchw schedule_elemwise "
        "schedule_extern schedule_injective schedule_pool schedule_reduce "
        "schedule_softmax target_scope"
    ),
    "schedules.cuda": "schedule_cuda",
    "schedules.gpu": "schedule_gpu",
    "schedules.llvm": "schedule_llvm",
    "schedules.tensor_cores": "TensorCoreBlock schedule_tensor_cores",
}


def _modules_by_name(sources: dict[str, str]) -> dict[str, str]:
    return {
        name: f"refcomp.topi.{module}"
        for module, names in sources.items()
        for name in names.split()
    }


# Name -> module.
OPERATOR_HOMES = _modules_by_name(SOURCES)
SCHEDULE_HOMES = _modules_by_name(SCHEDULES)
