"""The resources of a card that may limit a launch."""

from enum import StrEnum


class Limit(StrEnum):
    """A resource that may limit a launch."""

    VECTOR = "VALU"
    MATRIX = "MFMA"
    SCALAR = "SALU"
    SHARED = "LDS"
    # NVIDIA's words for the parts of a multiprocessor.
    ARITHMETIC = "arithmetic"
    TENSOR = "tensor cores"
    ISSUE = "issue"
    BANKS = "shared memory"
    CACHE = "L1"
    MEMORY = "memory"


# Resources of a SIMD, or of one of the four parts of a multiprocessor. All other resources belong
# to the whole unit.
OF_SIMDS = frozenset(
    {Limit.VECTOR, Limit.MATRIX, Limit.ARITHMETIC, Limit.TENSOR, Limit.ISSUE}
)
