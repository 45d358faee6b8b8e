"""PNG files of profiles and memory plans, and the message without matplotlib."""

import sys

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.debug.memory import MemoryBox, MemoryMap
from refcomp.graph.debug.pictures import save_memory, save_profile
from refcomp.graph.debug.roofline import NetworkProfile
from tests.graph.debug.profiles import PEAKS, node, profile

# The first import of matplotlib on a machine runs fc-list.
pytestmark = pytest.mark.tools

MEMORY = MemoryMap(
    boxes=(MemoryBox("x$_$", 0, 64, -1, 0), MemoryBox("y", 64, 128, 0, 1)),
    peak=192,
    least=192,
    in_place=192,
    apart=192,
    constants=0,
    operators=("y (relu)",),
)


@pytest.fixture
def png(tmp_path):
    pytest.importorskip("matplotlib")
    return tmp_path / "picture.png"


def size_of(path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def test_a_profile_is_drawn(png) -> None:
    save_profile(profile(), str(png))
    assert size_of(png) == (1200, 900)


def test_a_profile_of_many_nodes_is_drawn(png) -> None:
    nodes = tuple(node(f"n{k}", "relu", 1e-3, 10, 10) for k in range(40))
    save_profile(NetworkProfile(nodes, PEAKS), str(png))
    few = png.read_bytes()
    save_profile(NetworkProfile(nodes, None), str(png))
    assert png.read_bytes() != few


def test_a_memory_plan_is_drawn(png) -> None:
    save_memory(MEMORY, str(png))
    assert size_of(png) == (1200, 600)


def test_a_folder_is_not_written(png) -> None:
    with pytest.raises(UserError, match="cannot be written\n  why: Is a directory"):
        save_memory(MEMORY, str(png.parent))


@pytest.mark.parametrize("save", [save_profile, save_memory])
def test_without_matplotlib_the_extra_is_named(monkeypatch, tmp_path, save) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(UserError, match="needs the package matplotlib, which is not") as info:
        save(profile() if save is save_profile else MEMORY, str(tmp_path / "x.png"))
    assert info.value.remedy == 'pip install "refcomp[pictures]"'
