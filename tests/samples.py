"""The number of samples that a test draws: few by day, which is fast, and all of them nightly."""

from hypothesis import settings


def sample_count(by_day: int, nightly: int) -> int:
    """Return how many samples this run draws: `nightly` with --nightly, else `by_day`.

    Modules of tests are imported after the profile of the run is loaded.
    """
    return nightly if settings.get_current_profile_name() == "nightly" else by_day
