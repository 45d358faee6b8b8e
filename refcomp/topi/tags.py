"""Tags of ComputeOps, by which schedules recognise the stages of operators."""

# Each element is a cheap expression of the inputs: may be computed where it is read.
INJECTIVE = "injective"
# A copy with a border: has memory of its own, so that the loops that read it need no guards.
PAD = "pad"
# Elementwise, but costly and read more than once: has memory of its own.
SHARED = "shared"
# A convolution over [n, y, x, channel] with weights [ky, kx, in, out].
CONV2D_NHWC = "conv2d_nhwc"
# A convolution over blocks of channels, with weights in blocks of both sorts.
CONV2D_NCHWC = "conv2d_nchwc"
# Any other reduction.
REDUCTION = "reduction"
