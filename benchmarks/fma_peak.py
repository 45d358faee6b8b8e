"""The peak of a core: the most floating-point operations a second, measured on registers alone."""

from refcomp.graph.debug.peaks import FMA_GFLOP as PEAK_GFLOP
from refcomp.graph.debug.peaks import bind_fma as bind_peak

__all__ = ["PEAK_GFLOP", "bind_peak"]  # of one call, on one thread
