"""Fourier transforms of frames of a signal.

Reference: J. B. Allen, "Short Term Spectral Analysis, Synthesis, and Modification by Discrete
Fourier Transform", IEEE Transactions on Acoustics, Speech, and Signal Processing 25, 1977.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    extents,
    require_constant,
    require_extent,
    require_float,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.signal.stages import (
    as_state,
    complex_numpy,
    factors_of,
    parts_numpy,
    transform,
    transform_numpy,
    wide_dtype,
)
from refcomp.topi.tags import INJECTIVE


def stft(
    data: Tensor,
    window: Tensor | None = None,
    *,
    frame_step: int,
    frame_length: int,
    onesided: bool = True,
) -> Tensor:
    """Return the Fourier transform of each frame of a signal, times a window.

        result[b, f, k] = sum over j < N of data[b, f * step + j] * window[j] * w ** (j * k)

    with N = frame_length and w = exp(-2i * pi / N). There are floor((n - N) / step) + 1 frames of a
    signal of n elements, which is not padded. The sums are computed as those of `fft`, in f32, or
    in f64 for f64. A NaN or an infinity makes all results of its frames NaN.

    Args:
        data: floats [batch, n, 1] of real or [batch, n, 2] of complex numbers, with a constant n.
        window: [N], of the dtype of `data`; ones by default.
        frame_step: elements from one frame to the next.
        frame_length: elements of a frame, at least 1.
        onesided: True if only results 0 to N // 2 of each frame are wanted. The others are
            conjugates if the signal is real.

    Returns:
        A tensor [batch, frames, N or N // 2 + 1, 2] of the dtype of `data`: real and imaginary
        parts.

    Raises:
        UserError: a rank, extent or dtype does not fit, n is symbolic or less than N, a step or
            length is less than 1, or one side is wanted of a complex signal.

    Reference: ONNX STFT.

    Example::

        >>> A = rc.placeholder((1, 6, 1), name="A")
        >>> B = rc.topi.stft(A, frame_step=2, frame_length=4)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.ones((1, 6, 1), "float32")})
        >>> print(b[0, :, :, 0])
        [[4. 0. 0.]
         [4. 0. 0.]]
    """
    require_rank(data, 3, "stft", "the signal")
    require_float(data, "stft")
    batch, whole, parts = extents(data)
    size = require_constant(whole, "stft: the extent of the signal")
    if parts not in (1, 2):
        raise UserError(
            "stft takes a signal whose last extent is 1 or 2",
            why="it holds the real and the imaginary part",
            remedy="reshape the signal to [batch, n, 1]",
            earlier=[data.declaration()],
        )
    if onesided and parts == 2:
        raise UserError(
            "stft gives one side only of a real signal", remedy="set onesided=False"
        )
    if frame_step < 1 or not 1 <= frame_length <= size:
        raise UserError(
            f"stft cannot take frames of {frame_length} elements in steps of "
            f"{frame_step} from {size}",
            remedy="use a step of 1 or more, and frames that fit in the signal",
        )
    if window is not None:
        require_rank(window, 1, "stft", "the window")
        require_one_dtype("stft", data, window)
        what = "the extent of the window"
        require_extent(
            extents(window)[0], frame_length, "stft", what, tensors=(window,)
        )
    wide = wide_dtype(data.dtype)

    def part(index: tuple[Expr, ...], side: Expr) -> Expr:
        b, frame, j = index
        place = frame * frame_step + j
        channel = side if parts == 2 else as_dim(0)
        value = data[b, place, channel].astype(wide)
        if window is not None:
            value = value * window[j].astype(wide)
        if parts == 2:
            return value
        return maths.select(side == 0, value, const(0.0, wide))

    frames = (size - frame_length) // frame_step + 1
    shape = (batch, frames, frame_length)
    start = as_state(part, shape, 2, size=frame_length, length=frame_length)
    state = transform(start, 2, factors_of(frame_length), inverse=False)
    count = frame_length // 2 + 1 if onesided else frame_length
    return compute(
        (batch, frames, count, 2),
        lambda b, frame, k, side: state[b, frame, 0, k, side].astype(data.dtype),
        name="stft",
        tag=INJECTIVE,
    )


def _sample_stft(draws: Draws) -> Sample:
    dtype = draws.float_dtype()
    length = draws.choice((1, 2, 3, 4, 6, 8))
    size = length + draws.integer(0, 6)
    parts = draws.integer(1, 2)
    data = draws.array((draws.extent(0), size, parts), dtype)
    window = draws.choice((None, draws.uniform((length,), 0, 1, dtype)))
    attributes = {
        "frame_step": draws.integer(1, 3),
        "frame_length": length,
        "onesided": parts == 1 and draws.flag(),
    }
    return Sample((data, window), attributes)


@meaning_of(stft, sample=_sample_stft)
def stft_numpy(
    data: Array,
    window: Array | None = None,
    *,
    frame_step: int,
    frame_length: int,
    onesided: bool = True,
) -> Array:
    numbers = complex_numpy(data)
    starts = range(0, data.shape[1] - frame_length + 1, frame_step)
    frames = [numbers[:, start : start + frame_length] for start in starts]
    stacked = np.stack(frames, axis=1)
    if window is not None:
        factor = window.astype(np.longdouble)
        stacked = stacked.real * factor + 1j * (stacked.imag * factor)
    result = transform_numpy(stacked, 2, frame_length, inverse=False)
    if onesided:
        result = result[:, :, : frame_length // 2 + 1]
    return parts_numpy(result, data.dtype)
