"""The number of samples follows the profile of the run."""

from hypothesis import settings

from tests.samples import sample_count


def test_a_nightly_run_draws_more(monkeypatch) -> None:
    monkeypatch.setattr(settings, "get_current_profile_name", lambda: "nightly")
    assert sample_count(by_day=2, nightly=40) == 40
    monkeypatch.setattr(settings, "get_current_profile_name", lambda: "ci")
    assert sample_count(by_day=2, nightly=40) == 2
