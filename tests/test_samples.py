"""The number of samples follows the profile of the run."""

from types import SimpleNamespace

import pytest

from tests import samples


@pytest.mark.parametrize(("profile", "count"), [("nightly", 40), ("ci", 2)])
def test_a_nightly_run_draws_more(profile, count, monkeypatch) -> None:
    settings = SimpleNamespace(get_current_profile_name=lambda: profile)
    monkeypatch.setattr(samples, "settings", settings)
    assert samples.sample_count(by_day=2, nightly=40) == count
