"""What the documents say is so: the README's program, the paths, targets and terms they name."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from refcomp.driver.backends import backends

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parents[1]
ROOMS = {path.name for path in (ROOT / "refcomp").iterdir() if path.suffix != ".md"}
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "refcomp/ARCHITECTURE.md",
    "refcomp/GLOSSARY.md",
    "refcomp/classic/MIGRATION.md",
    "benchmarks/README.md",
    "scripts/data/digits/README.md",
    "scripts/walkthroughs/README.md",
)


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def fenced(document: str, language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text_of(document))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The README's program, saved as it says."""
    path = tmp_path / "matmul.py"
    path.write_text(fenced("README.md", "python")[0], encoding="utf-8")
    return path


def printed(command: list[str], folder: Path, given: str = "") -> str:
    done = subprocess.run(
        command, cwd=folder, input=given.encode("latin-1"), capture_output=True, timeout=120
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return done.stdout.decode("latin-1")


@pytest.mark.llvm
def test_the_readme_program_prints_what_the_readme_says(program: Path) -> None:
    text = printed([sys.executable, program.name], program.parent)
    assert text == fenced("README.md", "text")[0]


@pytest.mark.llvm
def test_the_readme_commands_print_what_the_readme_says(program: Path) -> None:
    session = fenced("README.md", "console")[0]
    line, _, expected = session.removeprefix("$ ").replace("|\n", "|").partition("\n")
    text = ""
    for command in line.split("|"):
        name, *arguments = shlex.split(command)
        assert name == "refcomp"
        text = printed([sys.executable, "-m", "refcomp.cli", *arguments], program.parent, text)
    assert text == expected


@pytest.mark.rocm
def test_the_readme_session_on_an_emulated_gpu(tmp_path: Path) -> None:
    """What it prints; for `...` anything may stand, such as registers and addresses."""
    (tmp_path / "scale.py").write_text(fenced("README.md", "python")[1], encoding="utf-8")
    commands = re.findall(r"(?m)^\$ (.*)\n((?:(?!\$ ).*\n)*)", fenced("README.md", "console")[1])
    assert len(commands) == 3
    for command, expected in commands:
        name, *arguments = shlex.split(command)
        program = [sys.executable, *(["-m", "refcomp.cli"] if name == "refcomp" else [])]
        done = subprocess.run(
            [*program, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        told = ".*".join(map(re.escape, expected.split("...")))
        assert re.fullmatch(told, done.stdout, re.DOTALL), done.stdout + done.stderr
        assert done.returncode == ("n:i64=101" in arguments)


@pytest.mark.nvcc
def test_the_readme_lists_the_resources_of_kernels_for_nvidia(tmp_path: Path) -> None:
    """Versions of nvcc may choose other registers."""
    (tmp_path / "scale.py").write_text(fenced("README.md", "python")[1], encoding="utf-8")
    (session,) = (text for text in fenced("README.md", "console") if "--resources" in text)
    line, _, expected = session.removeprefix("$ ").partition("\n")
    name, *arguments = shlex.split(line)
    assert name == "refcomp"
    text = printed([sys.executable, "-m", "refcomp.cli", *arguments], tmp_path, "")
    assert without_numbers(text) == without_numbers(expected)


def without_numbers(text: str) -> list[str]:
    return re.sub(r"\b\d+\b", "N", text).split()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files(document: str) -> None:
    folder = (ROOT / document).parent
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text_of(document))
    assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_named_in_the_text_exist(document: str) -> None:
    """Every path in backticks; in capitals stands what the reader chooses."""
    named = re.findall(r"`((?:[a-z_]+/)+[A-Za-z_.]*)`", text_of(document))
    named = [path for path in named if not re.search(r"[A-Z]", path.removesuffix(".md"))]
    assert [path for path in named if not any((base / path).exists() for base in BASES)] == []


BASES = (ROOT, ROOT / "refcomp")


def test_the_architecture_lists_every_room_and_no_other() -> None:
    rooms = fenced("refcomp/ARCHITECTURE.md", "text")[0]
    listed = {line.split()[0].rstrip("/") for line in rooms.splitlines()}
    others = {"__init__.py", "__main__.py", "__pycache__", "py.typed", "ruff.toml"}
    assert listed == ROOMS - others


def test_the_architecture_has_the_rooms_in_the_order_of_the_import_contract() -> None:
    lines = fenced("refcomp/ARCHITECTURE.md", "text")[0].splitlines()
    listed = [re.match(r"\w+", line)[0] for line in lines]
    rooms = text_of("setup.cfg").split("[importlinter:contract:")[1]
    contract = re.findall(r"(?m)^    (\(?\w+\)?(?: \| \(?\w+\)?)*)$", rooms)
    layers = [re.findall(r"\w+", layer) for layer in contract]
    above = {room: number for number, layer in enumerate(layers) for room in layer}
    numbers = [above[room] for room in listed if room != "oracle"]
    assert numbers == sorted(numbers, reverse=True)


def test_the_readme_says_of_every_target_that_it_works() -> None:
    rows = re.findall(r"(?m)^\| (.+?) +\|.*\| ([\w ]+?) +\|$", text_of("README.md"))
    working = [name.strip("`") for name, state in rows if state == "works"]
    assert working == [one.name for one in backends()]


def test_the_readme_names_every_environment_variable_and_no_other() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in [*(ROOT / "refcomp").rglob("*.py"), *(ROOT / "toolchains").glob("*.toml")]
    )
    read = set(re.findall(r"\"(REFCOMP_[A-Z_]+)\"", code))
    read |= set(re.findall(r"environ\.get\(\s*\"([A-Z_]+)\"", code))
    read |= set(re.findall(r"(?m)^variables?\.?([A-Z_]+) = ", code))
    table = text_of("README.md").partition("## Environment variables")[2].partition("\n## ")[0]
    rows = re.findall(r"(?m)^\| (`.*?) \|", table)
    listed = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)}
    outside = {"TMPDIR", "REFCOMP_NO_INSTALL"}  # read by Python's tempfile, and by scripts/setup
    defaults = {"XDG_CACHE_HOME", "OMP_NUM_THREADS"}
    assert listed == (read | outside) - defaults - {"PATH"}
    assert all(name in table for name in defaults)


def test_the_readme_names_every_extra() -> None:
    extras = text_of("setup.cfg").partition("[options.extras_require]\n")[2].partition("\n[")[0]
    table = text_of("README.md").partition("## As a library")[2].partition("\n## ")[0]
    listed = re.findall(r"(?m)^\| `(\w+)`", table)
    assert sorted(listed) == sorted(re.findall(r"(?m)^(\w+) ?=", extras))


def test_every_walkthrough_has_its_line() -> None:
    folder = ROOT / "scripts" / "walkthroughs"
    lines = re.findall(r"(?m)^\d+\. \[(\w+\.py)\]", text_of("scripts/walkthroughs/README.md"))
    assert sorted(lines) == sorted(path.name for path in folder.glob("*.py"))


def test_every_term_of_the_glossary_is_used() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8").lower() for path in (ROOT / "refcomp").rglob("*.py")
    )
    bold = re.findall(r"\*\*(.+?)\*\*", text_of("refcomp/GLOSSARY.md"))
    terms = [term for names in bold for term in names.lower().split(", ")]
    assert len(terms) > 40
    assert [term for term in terms if not is_used(term, code)] == []


def is_used(term: str, code: str) -> bool:
    """As a word of its own, with an ending, or as part of a name."""
    words = r"[\s_-]+".join(map(re.escape, term.split()))
    return re.search(rf"(?<![a-z]){words}", code) is not None


@pytest.mark.parametrize("document", DOCUMENTS)
def test_lines_are_of_readable_length(document: str) -> None:
    lines = re.sub(r"(?ms)^```.*?^```$", "", text_of(document)).splitlines()
    assert [line for line in lines if len(line) > 110 and not line.startswith("|")] == []
