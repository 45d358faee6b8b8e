"""The kinds of targets of refcomp, their back ends and their toolchains belong together."""

import pytest

from refcomp.driver.backend import backend_of
from refcomp.foundation.own_targets import OWN_KINDS
from refcomp.foundation.target import target_kinds
from refcomp.runtime.device import device_kinds
from refcomp.toolchain import toolchain_names


def test_targets_are_known_before_a_back_end_is_imported():
    assert target_kinds()[: len(OWN_KINDS)] == tuple(OWN_KINDS.values())


@pytest.mark.parametrize("name", OWN_KINDS)
def test_a_back_end_is_what_its_kind_says(name):
    kind = OWN_KINDS[name]
    backend = backend_of(name)
    assert (backend.name, backend.summary, backend.options) == (name, kind.meaning, kind.options)
    assert (backend.limits, backend.device) == (kind.limits, kind.device)
    assert backend.schedules == kind.schedules
    assert kind.device in device_kinds()
    assert set(kind.toolchains or ()) <= set(toolchain_names())
