"""Rates of a multiprocessor (SM) of an NVIDIA GPU, by compute capability.

Sources:

- arithmetic: NVIDIA, "CUDA C++ Programming Guide", table "Throughput of Native Arithmetic
  Instructions". If a PTX instruction may be of several kinds, the highest rate is taken.
- tensor cores: the white papers of the architectures Volta, Turing, A100, GA102, Ada and H100,
  without sparsity. On the H100 only `wgmma` reaches the peak, and `mma` reaches less. GA102
  and its successors multiply matrices of f64 by their few units for f64 (white paper of GA102).
- tensor cores of the A10 and L4: NVIDIA's data sheets of these cards. GeForce cards with GPUs of
  the same compute capability sum in f32 at half their rate, and have half their rate for tf32.
- shared memory: 32 banks of 4 bytes, as `refcomp.emulator.observers.counting.banks` counts them
- the L1 cache: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" and
  "Dissecting the NVIDIA Turing T4 GPU via Microbenchmarking". For GPUs since Ampere, the rate of
  Volta is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

F32_SUMS = "with f32 sums"
SCHEDULERS = 4  # of a multiprocessor. Each issues one instruction a clock.


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """A multiprocessor. Rates are per clock.

    Attributes:
        mcpu: the compute capability, such as sm_90.
        lanes: operations on f32.
        f64: operations on f64.
        f16: operations on f16. An operation on a pair counts as two.
        integers: operations on 32-bit integers.
        matrix: multiply-adds of tensor cores, by the dtype of the factors. A dtype may occur a
            second time, as in "f16 with f32 sums".
        cache_bytes: bytes of the L1 cache.
        special: functions such as a reciprocal.
        exchanged: lanes that exchange values in a warp.
        simds: the number of schedulers.
    """

    mcpu: str
    lanes: int
    f64: int
    f16: int
    integers: int
    matrix: Mapping[str, int]
    cache_bytes: int = 128
    special: int = 16
    exchanged: int = 32
    simds: int = SCHEDULERS

    def matrix_rate(self, dtype: str, has_f32_sums: bool) -> int:
        """Return the multiply-adds of tensor cores on factors of a dtype.

        If no figure is known, return the highest rate, so that times stay lower bounds.
        """
        rates = self.matrix
        found = rates.get(dtype, max(rates.values()))
        return rates.get(f"{dtype} {F32_SUMS}", found) if has_f32_sums else found


VOLTA = Multiprocessor("sm_70", 64, 32, 128, 64, {"f16": 512})
TURING = Multiprocessor(
    "sm_75", 64, 2, 128, 64, {"f16": 512, "i8": 1024, "i4": 2048}, cache_bytes=64
)
_AMPERE_TENSOR = {
    "f64": 64,
    "tf32": 512,
    "f16": 1024,
    "bf16": 1024,
    "i8": 2048,
    "i4": 4096,
}
AMPERE = Multiprocessor("sm_80", 64, 32, 256, 64, _AMPERE_TENSOR)
_GA10X_TENSOR = {"f64": 2, "tf32": 256, "f16": 512, "bf16": 512, "i8": 1024, "i4": 2048}
_GEFORCE_TENSOR = {
    **_GA10X_TENSOR,
    "tf32": 128,
    "bf16": 256,
    f"f16 {F32_SUMS}": 256,
}
_GEFORCE_ADA_TENSOR = {**_GEFORCE_TENSOR, "fp8": 1024, f"fp8 {F32_SUMS}": 512}
GA10X = Multiprocessor("sm_86", 128, 2, 128, 64, _GA10X_TENSOR)
GEFORCE_GA10X = Multiprocessor("sm_86", 128, 2, 128, 64, _GEFORCE_TENSOR)
ADA = Multiprocessor("sm_89", 128, 2, 128, 64, {**_GA10X_TENSOR, "fp8": 1024})
GEFORCE_ADA = Multiprocessor("sm_89", 128, 2, 128, 64, _GEFORCE_ADA_TENSOR)
HOPPER = Multiprocessor(
    "sm_90",
    128,
    64,
    256,
    64,
    {"f64": 128, "tf32": 1024, "f16": 2048, "bf16": 2048, "i8": 4096, "fp8": 4096},
)
