"""The page of a profile: self-contained, escaped, and drawn to scale."""

import re
from dataclasses import replace

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.debug.page import page_of_network, save_page
from refcomp.graph.debug.roofline import NetworkProfile
from tests.graph.debug.profiles import profile


def test_nothing_is_loaded_and_nothing_runs() -> None:
    page = page_of_network(profile(), "net")
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert not re.search(r"<script|https?:|src=|@import|url\(", page)


def test_names_are_escaped() -> None:
    page = page_of_network(profile(), "<title>")
    assert "<b>$" not in page
    assert "&lt;b&gt;$" in page
    assert "&lt;title&gt;" in page


def test_bars_are_as_high_as_their_times() -> None:
    page = page_of_network(profile(), "net")
    bars = re.findall(r'<rect class="(\w+)".*? height="([\d.]+)">', page)
    assert bars == [
        ("compute", "190.00"),
        ("compute", "95.00"),
        ("memory", "95.00"),
        ("unknown", "0.00"),
    ]


def test_points_lie_under_the_roof() -> None:
    page = page_of_network(profile(), "net")
    (roof,) = re.findall(r'<path d="M[\d. ]+ L([\d.]+) ([\d.]+) L', page)
    points = re.findall(r'<circle class="compute" cx="([\d.]+)" cy="([\d.]+)"', page)
    assert len(points) == 2  # of the nodes that compute something
    assert all(float(y) > float(roof[1]) for _, y in points)


def test_without_peaks_there_is_no_roof() -> None:
    assert "<path" not in page_of_network(replace(profile(), peaks=None), "net")


def test_a_network_without_nodes_has_a_page() -> None:
    assert "0 nodes take" in page_of_network(NetworkProfile((), None), "net")


def test_the_page_is_written(tmp_path) -> None:
    save_page(profile(), str(tmp_path / "page.html"), "net")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(UserError, match="cannot be written\n  why: Is a directory"):
        save_page(profile(), str(tmp_path), "net")
