"""The resources that may limit a launch."""

from refcomp.profile.limit import OF_SIMDS, Limit


def test_arithmetic_belongs_to_simds_and_memory_does_not():
    assert {Limit.VECTOR, Limit.TENSOR, Limit.ISSUE} <= OF_SIMDS
    assert OF_SIMDS.isdisjoint({Limit.SHARED, Limit.BANKS, Limit.CACHE, Limit.MEMORY})
