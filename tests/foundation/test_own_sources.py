"""The version of refcomp's own code changes with each source file of a checkout."""

import os
import time
from pathlib import Path

import pytest

from refcomp import __version__
from refcomp.foundation import own_sources
from refcomp.foundation.own_sources import is_own_version_current, own_version, version_of


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The package of a checkout whose files are older than this process."""
    for name in ("refcomp/a.py", "refcomp/room/b.py", "templates/t.j2", "toolchains/llvm.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
        os.utime(path, (1000, 1000))
    return tmp_path / "refcomp"


def test_each_source_counts(checkout):
    now = time.time()
    versions = {version_of(checkout, now)}
    for name in ("a.py", "room/b.py", "../templates/t.j2", "../toolchains/llvm.toml"):
        path = checkout / name
        path.write_text("longer text")
        os.utime(path, (1000, 1000))
        versions.add(version_of(checkout, now))
        os.utime(path, (1001, 1001))
        versions.add(version_of(checkout, now))
    added = checkout / "added.py"
    added.write_text("")
    os.utime(added, (1000, 1000))
    versions.add(version_of(checkout, now))
    assert len(versions) == 10 and None not in versions


def test_compiled_files_of_python_do_not_count(checkout):
    now = time.time()
    before = version_of(checkout, now)
    (checkout / "__pycache__").mkdir()
    (checkout / "__pycache__" / "a.pyc").write_text("code")
    assert version_of(checkout, now) == before is not None


def test_a_source_that_changed_after_the_process_began_has_no_version(checkout):
    os.utime(checkout / "a.py", (3000, 3000))
    assert version_of(checkout, started=2999) is None
    assert version_of(checkout, started=3001) is not None


def test_a_wheel_has_its_version(tmp_path):
    assert version_of(tmp_path / "refcomp", time.time()) == __version__


def test_this_process_began_before_now():
    started = own_sources._started.__wrapped__()
    assert 0 < started <= time.time() + 0.1


def test_a_process_without_proc_began_at_an_unknown_time(monkeypatch):
    def fail(*_args, **_options):
        raise OSError

    monkeypatch.setattr("builtins.open", fail)
    assert own_sources._started.__wrapped__() == 0.0


def test_the_version_of_this_process_is_remembered(monkeypatch):
    own_version.cache_clear()
    monkeypatch.setattr(own_sources, "version_of", lambda *_: "before")
    assert own_version() == "before" and is_own_version_current()
    monkeypatch.setattr(own_sources, "version_of", lambda *_: "after")
    assert own_version() == "before" and not is_own_version_current()
    own_version.cache_clear()
