from refcomp.foundation.target_kind import DeviceLimits, TargetKind


def test_a_kind_runs_on_the_host_and_depends_on_the_unknown_by_default():
    kind = TargetKind("mine", "for tests", {})
    assert (kind.limits, kind.device, kind.toolchains) == (None, "cpu", None)


def test_limits_that_are_not_named_limit_nothing_usual():
    limits = DeviceLimits((1, 1, 1), 1, 0)
    assert limits.argument_bytes == limits.vector_bytes == 1 << 30
    assert limits.groups_per_axis == (2**31 - 1,) * 3 and not limits.features
