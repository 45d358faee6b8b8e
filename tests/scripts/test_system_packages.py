"""scripts/system_packages.py asks for what is missing, once, and goes on without what is not had.

It runs against a pretended distribution: files that list what is installed and what is offered.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "system_packages.py"
SPEC = importlib.util.spec_from_file_location("system_packages", SCRIPT)
assert SPEC and SPEC.loader
system_packages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(system_packages)

OTHERS = " ".join(system_packages.OTHERS)
ALL = f"llvm-19 lld-19 clang-19 libamdhip64-5 {OTHERS}"
COMMANDS = {
    "dpkg-query": """for p in $(cat installed); do echo "ii  $p"; done""",
    "apt-cache": """for p in $(cat offered); do echo "$p - a package"; done""",
    "apt-get": """
        echo "$@" >>asked
        for word; do
            case " $(cat offered) " in *" $word "*) echo "$word" >>installed ;; esac
        done""",
    "sudo": """[ "$1" = -n ] && shift && exec "$@" """,
}


class Distribution:
    def __init__(self, root: Path, installed: str, offered: str) -> None:
        self.root = root
        (root / "bin").mkdir()
        (root / "scripts").mkdir()
        (root / "scripts" / SCRIPT.name).write_text(SCRIPT.read_text(encoding="utf-8"))
        (root / "installed").write_text(installed + "\n")
        (root / "offered").write_text(offered)
        for name, text in COMMANDS.items():
            (root / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
            (root / "bin" / name).chmod(0o755)

    def run(self, *args: str) -> str:
        """What a run says, with the words of each apt-get command that it gave."""
        (self.root / "asked").write_text("")
        done = subprocess.run(
            [sys.executable, f"scripts/{SCRIPT.name}", *args],
            cwd=self.root,
            env={"PATH": f"{self.root / 'bin'}:{os.defpath}"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout + (self.root / "asked").read_text()


def test_when_all_is_there_it_only_looks(tmp_path: Path) -> None:
    assert Distribution(tmp_path, ALL, ALL).run() == "setup: system packages: all there\n"


def test_installs_what_is_missing_and_says_so_before(tmp_path: Path) -> None:
    distribution = Distribution(tmp_path, f"llvm-19 lld-19 {OTHERS}", ALL)
    told = distribution.run()
    assert "setup: system packages that are missing: clang-19 libamdhip64-5\n" in told
    assert "apt-get install clang-19 libamdhip64-5\n" in told
    assert "install -y --no-install-recommends clang-19 libamdhip64-5\n" in told
    assert distribution.run() == "setup: system packages: all there\n"


@pytest.mark.tools
def test_the_demo_asks_for_the_tools_of_hosts_alone(tmp_path: Path) -> None:
    distribution = Distribution(tmp_path, "", ALL)
    told = distribution.run("--demo")
    assert "install -y --no-install-recommends llvm-19 lld-19 libgomp1\n" in told
    assert distribution.run("--demo") == "setup: system packages: all there\n"
    assert "missing: clang-19 libamdhip64-5 " in distribution.run("--no-install")


def test_asked_to_install_none_it_only_names(tmp_path: Path) -> None:
    told = Distribution(tmp_path, OTHERS, ALL).run("--no-install")
    assert "setup: asked to install none of them\n" in told
    assert told.endswith("as root: apt-get install llvm-19 lld-19 clang-19 libamdhip64-5\n")


def test_what_is_not_offered_is_left_out_and_asked_for_once(tmp_path: Path) -> None:
    distribution = Distribution(tmp_path, "", ALL.replace("oclgrind", ""))
    first = distribution.run()
    assert first.count("update") == 2
    assert "going on without; to install later, as root: apt-get install oclgrind\n" in first
    second = distribution.run()
    assert "this distribution does not offer them; to ask it again, delete" in second
    assert "update" not in second


def test_one_package_that_fails_does_not_keep_others_out(tmp_path: Path) -> None:
    distribution = Distribution(tmp_path, OTHERS, ALL)
    apt = tmp_path / "bin" / "apt-get"
    refusal = 'case "$*" in *clang-19*) exit 100 ;; esac'
    apt.write_text(f"#!/bin/sh\n{refusal}\n{COMMANDS['apt-get']}\n")
    told = distribution.run()
    assert told.splitlines()[-1].endswith("install -y --no-install-recommends libamdhip64-5")
    assert "as root: apt-get install clang-19\n" in told


def test_without_root_and_sudo_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(system_packages, "SUDO", ["sudo", "-n"])
    monkeypatch.setattr(system_packages, "installed", set)
    monkeypatch.setattr(system_packages, "offered", set)
    monkeypatch.setattr(system_packages, "succeeds", lambda *command: False)
    monkeypatch.setattr(system_packages.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(sys, "argv", ["system_packages.py"])
    system_packages.main()
    assert "not root, and sudo is not usable without a password" in capsys.readouterr().out


def test_without_apt_get_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(system_packages.shutil, "which", lambda name: None)
    system_packages.main()
    assert "no apt-get: LLVM >= 15 (opt, llc, ld.lld)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("here", "there", "chosen"),
    [
        (set(), set(), 19),
        (set(), {15, 16, 19, 22}, 19),
        ({16}, {15, 16, 19, 22}, 19),
        ({20}, {19, 20, 22}, 20),
        ({19, 22}, set(), 19),
        (set(), {18, 21, 22}, 22),
        ({15}, {15, 16}, 15),
        (set(), {14, 15, 16}, 16),
        ({14}, {14}, 19),
    ],
)
def test_choice_of_llvm(here: set[int], there: set[int], chosen: int) -> None:
    assert system_packages.choose_llvm(here, there) == chosen


def test_the_older_llvm_is_asked_for_once_and_never_chosen_for_all() -> None:
    assert system_packages.missing(set(ALL.split()) - {"lld-16"}, set(ALL.split())) == ["lld-16"]
    there = {*ALL.split(), "clang-16"} - {"clang-19"}
    asked = system_packages.missing(set(), there)
    assert asked[:3] == ["llvm-16", "lld-16", "clang-16"]
    assert len(asked) == len(set(asked))


def test_a_number_counts_only_when_all_its_packages_are_there() -> None:
    packages = {"llvm-19", "lld-19", "clang-19", "llvm-22", "lld-22", "clang-22-doc", "llvm"}
    assert system_packages.numbers(("llvm", "lld", "clang"), packages) == {19}


def test_a_program_on_the_path_replaces_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert {"npm", "espeak-ng"} <= {*system_packages.missing(set(), {*ALL.split()})}
    (tmp_path / "npm").write_text("#!/bin/sh\n")
    (tmp_path / "npm").chmod(0o755)
    lacking = system_packages.missing(set(), {*ALL.split()})
    assert "npm" not in lacking and "espeak-ng" in lacking
