"""Tags of computes, by which schedules recognise the stages of operators."""

# A copy with a border. It has memory of its own, so that the loops that read it need no guards.
PAD = "pad"
# Elementwise, but costly and read more than once. It has memory of its own.
SHARED = "shared"
# A convolution over blocks of channels; the weights have blocks of input and of output channels.
CONV2D_NCHWC = "conv2d_nchwc"
# A convolution of each channel by itself, over blocks of channels.
DEPTHWISE_NCHWC = "depthwise_nchwc"
# The last stage of a convolution by Winograd's filtering on blocks of channels.
CONV2D_WINOGRAD = "conv2d_winograd"
# Any other reduction.
REDUCTION = "reduction"
