"""Texts are compiled at the same time and then joined; failures leave no tool behind."""

import os
import signal
import time
from pathlib import Path
from threading import Timer

import pytest

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.parts import PartsBuild

# Writes all parts, one after the other, to the last argument.
JOIN = (
    'for last; do :; done\nfor word; do case "$word" in */part*) cat "$word";; esac; done > "$last"'
)
# Copies a file that holds `wait` only after the file `go` has appeared; refuses one with `fail`.
COPY = """
for last; do :; done
for word; do case "$word" in {temporary}/*) [ -n "$input" ] || input="$word";; esac; done
touch "{folder}/$(cat "$input" | tr ' ' _)"
if grep -q wait "$input"; then while [ ! -e "{folder}/go" ]; do sleep 0.01; done; fi
if grep -q fail "$input"; then echo "opt: kernel.ll:1:1: error: bad" >&2; exit 1; fi
if grep -q hang "$input"; then echo $$ > "{folder}/pid"; exec sleep 600; fi
cp "$input" "$last"
"""


def _source(text: str, **fields: object) -> Source:
    return Source(text, "llvm", **fields)  # type: ignore[arg-type]


@pytest.fixture
def folder(fake_tools, tmp_path: Path) -> Path:
    """A folder where the fake opt leaves a file for each text that it begins to read."""
    fake_tools.add_all()
    seen = tmp_path / "seen"
    seen.mkdir()
    body = COPY.format(temporary=tmp_path / "temporary", folder=seen)
    fake_tools.add("opt", body=body)
    fake_tools.add("ld.lld", body=JOIN)
    return seen


def _build(*texts: str, processes: int = 2, **fields: object) -> Binary:
    with PartsBuild({}, "so", processes=processes, **fields) as build:  # type: ignore[arg-type]
        for text in texts:
            build.start(_source(text, line_map=(f"of {text}",)))
        return build.join(frozenset())


def _wait_for(path: Path) -> str:
    for _ in range(3000):
        if path.exists() and path.read_text().strip():
            return path.read_text().strip()
        time.sleep(0.01)
    raise AssertionError(f"{path} did not appear")


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _runs(fake_tools) -> list[str]:
    return [start.split()[0] for start in fake_tools.starts() if "--version" not in start]


def test_parts_are_joined_in_their_order(folder: Path) -> None:
    told: list[int] = []
    texts = [f"text {number}\n" for number in range(12)]
    binary = _build(*texts, notice=lambda: told.append(1))
    assert binary == Binary("".join(texts).encode(), "so")
    assert len(told) == len(texts)


def test_a_part_that_is_slow_does_not_change_the_order(folder: Path) -> None:
    Timer(0.1, (folder / "go").touch).start()
    assert _build("wait 1\n", "second\n").data == b"wait 1\nsecond\n"


def test_parts_run_at_the_same_time(folder: Path, fake_tools) -> None:
    """The first text waits for a file that the tool of the second one makes."""
    assert _build("wait\n", "go", processes=2).data == b"wait\ngo"


@pytest.mark.parametrize("processes", [1, 3])
def test_no_more_tools_run_at_once_than_asked_for(fake_tools, tmp_path: Path, processes) -> None:
    (tmp_path / "now").mkdir()
    fake_tools.add_all()
    fake_tools.add("ld.lld", body=JOIN)
    counted = f"""
touch {tmp_path}/now/$$; ls {tmp_path}/now | wc -l >> {tmp_path}/counts; sleep 0.02
for last; do :; done; touch "$last"; rm {tmp_path}/now/$$"""
    for name in ("opt", "llc"):
        fake_tools.add(name, body=counted)
    _build(*(f"text {number}" for number in range(8)), processes=processes)
    counts = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 16 and max(counts) <= processes


def test_parts_and_result_come_from_the_cache(folder, fake_tools, as_another_process) -> None:
    first = _build("one\n", "two\n")
    assert sorted(_runs(fake_tools)) == ["ld.lld", "llc", "llc", "opt", "opt"]
    as_another_process()
    assert _build("one\n", "two\n") == first
    assert len(_runs(fake_tools)) == 5
    assert _build("one\n", "three\n").data == b"one\nthree\n"  # a new part, a new result
    assert len(_runs(fake_tools)) == 8


def test_the_error_is_that_of_the_first_part_that_fails(folder: Path, fake_tools) -> None:
    """The part before it goes on: its own error, if it fails, comes first."""
    with pytest.raises(ToolchainError, match="opt failed") as caught:
        _build("good\n", "fail 2\n", "fail 3\n")
    assert caught.value.where == "of fail 2\n"
    fake_tools.add("llc", body="echo 'llc: error: broken' >&2; exit 1")
    with pytest.raises(ToolchainError, match="llc failed"):
        _build("other\n", "fail 2\n")


def test_a_failure_kills_the_parts_behind_it(folder: Path) -> None:
    with pytest.raises(ToolchainError) as caught, PartsBuild({}, "so", processes=2) as build:
        build.start(_source("wait fail\n"))
        build.start(_source("hang\n"))
        pid = int(_wait_for(folder / "pid"))
        build.start(_source("never\n"))
        (folder / "go").touch()
        build.join(frozenset())
    assert "opt failed" in str(caught.value)
    assert not _is_alive(pid)
    assert not (folder / "never").exists()


class _UserMistake(Exception):
    pass


def test_an_error_of_the_caller_kills_all_parts(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(_UserMistake), PartsBuild({}, "so", processes=2) as build:
        build.start(_source("hang\n"))
        pid = int(_wait_for(folder / "pid"))
        raise _UserMistake
    assert not _is_alive(pid)
    assert list((tmp_path / "temporary").iterdir()) == []  # no folder is kept either


def test_an_interrupt_kills_all_parts(folder: Path) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt), PartsBuild({}, "so", processes=2) as build:
            build.start(_source("hang\n"))
            pid = int(_wait_for(folder / "pid"))
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            build.join(frozenset())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not _is_alive(pid)


def test_a_part_that_hangs_is_killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFCOMP_TOOL_TIMEOUT", "0.5")
    with pytest.raises(ToolchainError, match=r"opt was not done after 0\.5 s"):
        _build("hang\n", "good\n")


def test_a_link_that_fails_shows_the_command(folder: Path, fake_tools) -> None:
    fake_tools.add("ld.lld", body="echo 'ld.lld: error: duplicate symbol: f' >&2; exit 1")
    with pytest.raises(ToolchainError, match=r"^ld\.lld failed") as caught:
        _build("one\n", "two\n")
    assert "duplicate symbol: f" in caught.value.stderr
    assert caught.value.kept is not None
    kept = sorted(path.name for path in caught.value.kept.iterdir())
    assert kept == ["part0", "part1"]
    assert [word for word in caught.value.command if "part" in word] == [
        str(caught.value.kept / name) for name in kept
    ]


def test_kept_runs_make_the_result_again(folder, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("REFCOMP_KEEP", str(tmp_path / "kept"))
    binary = _build("one\n", "two\n")
    scripts = sorted((tmp_path / "kept").glob("llvm-*/commands.sh"))
    assert len(scripts) == 3  # one for each part, one for the link
    (link,) = (path for path in scripts if (path.parent / "part1").exists())
    (link.parent / "link.so").unlink()
    os.spawnv(os.P_WAIT, str(link), [str(link)])
    assert (link.parent / "link.so").exists()
    assert binary.data == b"one\ntwo\n"
