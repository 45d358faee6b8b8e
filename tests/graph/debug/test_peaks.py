"""The kernels that measure the machine: they compute what they claim. Nothing is timed here."""

import numpy as np
import pytest

from refcomp.foundation.errors import CompilerBug
from refcomp.graph.debug import peaks as peaks_module
from refcomp.graph.debug.peaks import FMA_GFLOP, bind_fma, bind_triad, measure_peaks
from refcomp.runtime.host.threads import set_thread_count, thread_count

pytestmark = pytest.mark.llvm


@pytest.mark.parametrize("threads", [1, 2])
def test_multiply_adds_are_checked_before_they_are_timed(threads: int) -> None:
    bind_fma(threads)()


def test_the_triad_is_checked_before_it_is_timed() -> None:
    bind_triad(1 << 14)()


def test_a_kernel_that_computes_something_else_is_a_bug(monkeypatch) -> None:
    monkeypatch.setattr(peaks_module, "_STEPS", 401_000)
    built = peaks_module._build_fma(1, "llvm")
    monkeypatch.setattr(peaks_module, "_STEPS", 400_000)
    monkeypatch.setattr(peaks_module, "_build_fma", lambda threads, target: built)
    with pytest.raises(CompilerBug, match="the kernel that measures multiply-adds computes"):
        bind_fma(1)


def test_peaks_follow_from_the_least_times(monkeypatch) -> None:
    before = thread_count()
    set_thread_count(2)
    try:
        # Milliseconds of one thread, of two threads, and of the triad; the least of them counts.
        times = iter([2, 4, 3] * 3)
        monkeypatch.setattr(peaks_module, "bind_fma", lambda *_: lambda: None)
        monkeypatch.setattr(peaks_module, "bind_triad", lambda *_: lambda: None)
        monkeypatch.setattr(peaks_module, "_ROUNDS", 3)
        monkeypatch.setattr(peaks_module, "seconds_of", lambda *_: 1e-3 * next(times))
        found = measure_peaks()
    finally:
        set_thread_count(before)
    assert found.gflops == pytest.approx(FMA_GFLOP * 2 / 2e-3)
    assert found.threads == 2
    elements = peaks_module._triad_elements()
    assert found.gbytes == pytest.approx(12e-9 * elements / 2e-3)
    assert elements * 4 >= 63 << 20
    assert np.log2(1 << 14) == 14 and elements % (1 << 14) == 0
