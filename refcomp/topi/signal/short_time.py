"""Fourier transforms of frames of a signal, and signals from these.

Reference: J. B. Allen, "Short Term Spectral Analysis, Synthesis, and Modification by Discrete
Fourier Transform", IEEE Transactions on Acoustics, Speech, and Signal Processing 25, 1977.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.signal.fourier import irfft, irfft_numpy
from refcomp.topi.signal.stages import (
    as_state,
    complex_numpy,
    factors_of,
    parts_numpy,
    transform,
    transform_numpy,
    wide_dtype,
)
from refcomp.topi.tags import REDUCTION


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
        _require_window(window, data, frame_length, "stft")
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


def istft(
    data: Tensor, window: Tensor | None = None, *, frame_step: int, frame_length: int
) -> Tensor:
    """Return the real signal whose frames have these Fourier transforms.

        result[b, n] = (sum of frame[b, f, n - f * step] * window[n - f * step])
                       / (sum of window[n - f * step] ** 2)

    over the frames f that hold element n. The frames are those of `irfft`. Elements with a divisor
    of 0, which no frame determines, are 0. So the result is the signal that fits best to transforms
    which were changed. A NaN or an infinity makes its frame NaN.

    Args:
        data: floats [batch, frames, bins, 2]: results 0 to frame_length // 2 of `stft`. The numbers
            of frames and bins are constant.
        window: [frame_length], of the dtype of `data`; ones by default.
        frame_step: elements from one frame to the next.
        frame_length: elements of a frame, at least 1.

    Returns:
        A tensor [batch, (frames - 1) * frame_step + frame_length] of the dtype of `data`.

    Raises:
        UserError: a rank, extent or dtype does not fit, there are no frames, or a step or length is
            less than 1.

    Reference: D. W. Griffin and J. S. Lim, "Signal Estimation from Modified Short-Time Fourier
    Transform", IEEE Transactions on Acoustics, Speech, and Signal Processing 32, 1984; torch.istft
    with center=False.

    Example::

        >>> A = rc.placeholder((1, 6, 1), name="A")
        >>> B = rc.topi.stft(A, frame_step=2, frame_length=4)
        >>> C = rc.topi.istft(B, frame_step=2, frame_length=4)
        >>> a = np.arange(6, dtype="float32").reshape(1, 6, 1)
        >>> print(abs(rc.oracle.evaluate([C], {A: a})[0]).round(3))
        [[0. 1. 2. 3. 4. 5.]]
    """
    require_rank(data, 4, "istft", "the tensor of transforms")
    require_float(data, "istft")
    batch, whole, bins, _ = extents(data)
    frames = require_constant(whole, "istft: the number of frames")
    if frames < 1 or frame_step < 1 or frame_length < 1:
        raise UserError(
            f"istft cannot join {frames} frames of {frame_length} elements in steps "
            f"of {frame_step}",
            remedy="use numbers >= 1",
        )
    what = "the number of bins"
    require_extent(bins, frame_length // 2 + 1, "istft", what, tensors=(data,))
    if window is not None:
        _require_window(window, data, frame_length, "istft")
    signals = irfft(data, axis=2, length=frame_length)
    wide = wide_dtype(data.dtype)
    # The number of frames that hold an element, at most.
    overlaps = -(-frame_length // frame_step)
    size = (frames - 1) * frame_step + frame_length

    def term(n: Expr, r: Expr, value: Callable[[Expr, Expr], Expr]) -> Expr:
        """Return the value of frame and place if the frame holds element n, else 0."""
        frame = maths.floordiv(n, frame_step) - r
        place = maths.floormod(n, frame_step) + r * frame_step
        exists = maths.all(frame >= 0, frame < frames, place < frame_length)
        return maths.if_then_else(exists, value(frame, place), const(0.0, wide))

    def weight(place: Expr) -> Expr:
        return const(1.0, wide) if window is None else window[place].astype(wide)

    r = reduce_axis(overlaps, "r")
    k = reduce_axis(overlaps, "k")

    def added(b: Expr, n: Expr) -> Expr:
        def value(frame: Expr, place: Expr) -> Expr:
            return signals[b, frame, place].astype(wide) * weight(place)

        return reducer.sum(term(n, r.var, value), axis=r)

    def squared(n: Expr) -> Expr:
        def value(frame: Expr, place: Expr) -> Expr:
            return weight(place) * weight(place)

        return reducer.sum(term(n, k.var, value), axis=k)

    total = compute((batch, size), added, name="total", tag=REDUCTION)
    divisor = compute((size,), squared, name="divisor", tag=REDUCTION)

    def element(b: Expr, n: Expr) -> Expr:
        quotient = total[b, n] / divisor[n]
        known = maths.select(divisor[n] == 0.0, const(0.0, wide), quotient)
        return known.astype(data.dtype)

    return compute((batch, size), element, name="istft", tag=INJECTIVE)


def _require_window(
    window: Tensor, data: Tensor, frame_length: int, operator: str
) -> None:
    require_rank(window, 1, operator, "the window")
    require_one_dtype(operator, data, window)
    what = "the extent of the window"
    require_extent(extents(window)[0], frame_length, operator, what, tensors=(window,))


def _sample_istft(draws: Draws) -> Sample:
    dtype = draws.float_dtype()
    length = draws.choice((1, 2, 3, 4, 6, 8))
    shape = (draws.extent(0), draws.integer(1, 4), length // 2 + 1, 2)
    data = draws.array(shape, dtype)
    usual = draws.uniform((length,), 0.1, 1, dtype)
    if draws.flag():
        usual[0] = 0  # as most windows begin
    window = draws.choice((None, usual))
    attributes = {"frame_step": draws.integer(1, 9), "frame_length": length}
    return Sample((data, window), attributes)


@meaning_of(istft, sample=_sample_istft)
def istft_numpy(
    data: Array, window: Array | None = None, *, frame_step: int, frame_length: int
) -> Array:
    batch, frames = data.shape[:2]
    size = (frames - 1) * frame_step + frame_length
    weights = np.ones(frame_length) if window is None else window.astype(np.float64)
    total = np.zeros((batch, size), np.longdouble)
    divisor = np.zeros(size, np.longdouble)
    wide = data.astype(np.longdouble)
    for frame in range(frames):
        part = slice(frame * frame_step, frame * frame_step + frame_length)
        signal = irfft_numpy(wide[:, frame], axis=1, length=frame_length)
        # A window of 0 makes NaN of NaN, too.
        total[:, part] += signal * weights
        divisor[part] += weights * weights
    with np.errstate(all="ignore"):
        result = np.where(divisor == 0, 0, total / divisor)
        return result.astype(data.dtype)
