"""Temporary folders go away with their process, however it ends, and nothing else does."""

import fcntl
import multiprocessing
import os
import stat
import time
from pathlib import Path

import pytest

from refcomp.foundation import private_folder as module
from refcomp.foundation.errors import ToolchainError
from refcomp.foundation.private_folder import private_folder, remove_stale

_MULTIPROCESSING = multiprocessing.get_context("spawn")
LOCK = ".refcomp-lock"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def _leave_behind(temporary: Path, name: str = "refcomp-dead") -> Path:
    """Make the folder of a killed process."""
    folder = temporary / name
    (folder / "work" / "deep").mkdir(parents=True)
    (folder / "work" / "deep" / "file").write_text("x")
    (folder / LOCK).touch()
    return folder


def test_folder_is_private_and_goes_away(temporary: Path) -> None:
    with private_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
        assert list(folder.iterdir()) == []
        (folder / "file").touch()
    assert list(temporary.iterdir()) == []
    with pytest.raises(KeyError), private_folder():
        raise KeyError
    assert list(temporary.iterdir()) == []


def test_folder_stays_only_when_an_error_names_it(temporary: Path) -> None:
    with pytest.raises(ToolchainError), private_folder():
        raise ToolchainError("failed")
    assert list(temporary.iterdir()) == []
    with pytest.raises(ToolchainError), private_folder() as folder:
        raise ToolchainError("failed", kept=folder)
    assert folder.exists()
    remove_stale(str(temporary))
    assert folder.exists()


def test_no_temporary_folder_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(ToolchainError, match="no temporary folder can be made") as caught,
        private_folder(),
    ):
        pass
    assert "set TMPDIR" in str(caught.value)


def test_folder_that_cannot_be_filled_leaves_nothing(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: object, target: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module.Path, "mkdir", refuse)
    with pytest.raises(ToolchainError, match="no temporary folder"), private_folder():
        pass
    assert list(temporary.iterdir()) == []


def test_file_system_without_locks_still_works(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(module.fcntl, "flock", refuse)
    with private_folder() as folder:
        (folder / "file").touch()
        remove_stale(str(temporary))
        assert (folder / "file").exists()
    assert list(temporary.iterdir()) == []


# ---- killed processes ------------------------------------------------------------------------


def _hold(temporary: Path, ready: Path) -> None:
    module.tempfile.tempdir = str(temporary)
    with private_folder() as folder:
        (folder / "half").write_text("made")
        ready.write_text(str(folder))
        time.sleep(600)


@pytest.mark.tools
def test_folder_of_a_killed_process_is_removed_by_the_next(temporary: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    holder = _MULTIPROCESSING.Process(target=_hold, args=(temporary, ready))
    holder.start()
    try:
        while not (ready.exists() and ready.read_text()):
            assert holder.is_alive()
            time.sleep(0.01)
        held = Path(ready.read_text())
        remove_stale(str(temporary))
        assert (held / "half").read_text() == "made"
    finally:
        holder.kill()
        holder.join()
    assert held.exists()
    with private_folder() as own:
        assert own.exists()
        assert [path.name for path in temporary.iterdir()] == [own.parent.name]


def test_each_process_looks_once(temporary: Path) -> None:
    with private_folder():
        pass
    dead = _leave_behind(temporary)
    with private_folder():
        pass
    assert dead.exists()


def test_folder_in_use_is_not_removed(temporary: Path) -> None:
    with private_folder() as folder:
        remove_stale(str(temporary))
        assert folder.exists()


def test_folder_stays_while_anybody_holds_its_lock(temporary: Path) -> None:
    folder = _leave_behind(temporary)
    with open(folder / LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_stale(str(temporary))
        assert (folder / "work" / "deep" / "file").exists()
    remove_stale(str(temporary))
    assert not folder.exists()


@pytest.mark.parametrize("name", ["other-dead", "refcom-dead", "Refcomp-dead"])
def test_folders_of_other_programs_stay(temporary: Path, name: str) -> None:
    folder = _leave_behind(temporary, name)
    remove_stale(str(temporary))
    assert folder.exists()


def test_folder_with_a_file_of_the_user_stays(temporary: Path) -> None:
    folder = _leave_behind(temporary)
    (folder / "notes.txt").touch()
    remove_stale(str(temporary))
    assert (folder / "work" / "deep" / "file").exists()


def test_folder_without_a_lock_stays(temporary: Path) -> None:
    folder = _leave_behind(temporary)
    (folder / LOCK).unlink()
    remove_stale(str(temporary))
    assert (folder / "work" / "deep" / "file").exists()


def test_folder_of_another_user_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _leave_behind(temporary)
    monkeypatch.setattr(module.os, "geteuid", lambda: os.getuid() + 4321)
    remove_stale(str(temporary))
    assert (folder / "work" / "deep" / "file").exists()


def test_link_to_a_folder_is_not_followed(temporary: Path, tmp_path: Path) -> None:
    elsewhere = _leave_behind(tmp_path, "elsewhere")
    (temporary / "refcomp-link").symlink_to(elsewhere)
    remove_stale(str(temporary))
    assert (elsewhere / "work" / "deep" / "file").exists()
    assert (temporary / "refcomp-link").is_symlink()


def test_links_inside_are_removed_not_followed(temporary: Path, tmp_path: Path) -> None:
    valuable = tmp_path / "valuable"
    valuable.mkdir()
    (valuable / "file").touch()
    inner = _leave_behind(temporary)
    (inner / "work" / "link").symlink_to(valuable)
    outer = _leave_behind(temporary, "refcomp-other")
    (outer / "work").rename(tmp_path / "moved")
    (outer / "work").symlink_to(valuable)
    remove_stale(str(temporary))
    assert (valuable / "file").exists()
    assert not inner.exists()


def test_lock_that_is_a_pipe_or_a_link_hangs_nobody(temporary: Path, tmp_path: Path) -> None:
    pipe = _leave_behind(temporary, "refcomp-pipe")
    (pipe / LOCK).unlink()
    os.mkfifo(pipe / LOCK)
    link = _leave_behind(temporary, "refcomp-link")
    (link / LOCK).unlink()
    (link / LOCK).symlink_to(tmp_path / "target")
    remove_stale(str(temporary))
    assert (link / "work").exists()
    assert not (tmp_path / "target").exists()


def test_folder_exchanged_while_it_is_removed_is_not_touched(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody moves the folder away, and puts another one in its place."""
    folder = _leave_behind(temporary)
    remove = module.shutil.rmtree

    def exchange_then_remove(name: str, ignore_errors: bool, dir_fd: int) -> None:
        folder.rename(tmp_path / "moved")
        (folder / "work").mkdir(parents=True)
        (folder / "work" / "valuable").touch()
        remove(name, ignore_errors, dir_fd=dir_fd)

    monkeypatch.setattr(module.shutil, "rmtree", exchange_then_remove)
    remove_stale(str(temporary))
    assert (folder / "work" / "valuable").exists()
    assert list((tmp_path / "moved").iterdir()) == []


@pytest.mark.parametrize("has_new_lock", [False, True])
def test_folder_kept_at_the_last_moment_stays(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, has_new_lock: bool
) -> None:
    """Its process lets go of the lock between our open and our lock, and keeps the folder."""
    folder = _leave_behind(temporary)
    lock = module.fcntl.flock

    def keep_then_lock(descriptor: int, operation: int) -> None:
        (folder / LOCK).unlink()
        if has_new_lock:
            (folder / LOCK).touch()
        lock(descriptor, operation)

    monkeypatch.setattr(module.fcntl, "flock", keep_then_lock)
    remove_stale(str(temporary))
    assert (folder / "work" / "deep" / "file").exists()


def _use_and_sweep(temporary: Path, number: int) -> None:
    module.tempfile.tempdir = str(temporary)
    for turn in range(60):
        with private_folder() as folder:
            (folder / "file").write_text(f"{number} {turn}")
            remove_stale(str(temporary))
            assert (folder / "file").read_text() == f"{number} {turn}"
        _leave_behind(temporary, f"refcomp-dead-{number}-{turn}")


@pytest.mark.tools
def test_many_processes_may_make_and_remove_at_once(temporary: Path) -> None:
    processes = [
        _MULTIPROCESSING.Process(target=_use_and_sweep, args=(temporary, number))
        for number in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 3
    remove_stale(str(temporary))
    assert list(temporary.iterdir()) == []
