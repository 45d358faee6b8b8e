"""The state of an emulated NVIDIA GPU: threads, their registers, and the spaces of memory."""
