"""Toolchain files are read completely, and a wrong one is refused by file and key."""

from pathlib import Path

import pytest

from refcomp.foundation.errors import UserError
from refcomp.toolchain.description import (
    Description,
    load_description,
    read_description,
    toolchain_names,
)

SMALL = """
purpose = "testing"
language = "text"
[look]
folders = ["/opt/x-{major}/bin"]
variables.X_HOME = ["bin"]
[version]
arguments = ["--version"]
pattern = 'version (\\d+\\.\\d+)'
least = "2.1"
greatest = "4"
[tools.x]
names = ["x-{major}", "x"]
[tools.y]
names = ["y"]
needed = false
[options.level]
default = "2"
[steps.go]
arguments = ["{x}", "-O{level}", "{input}", "-o", "{output}"]
suffix = "out"
[outputs.so]
format = "so"
steps = ["go"]
[install]
default = "get x"
"""


def _read(tmp_path: Path, content: str) -> Description:
    path = tmp_path / "small.toml"
    path.write_text(content)
    return read_description(path)


def test_remedies_are_known_by_what_a_tool_says() -> None:
    failures = load_description("rocm").failures
    told = "error: Unknown attribute kind (86) (Producer: 'LLVM20' Reader: 'LLVM 16.0.6')"
    assert "HIP_DEVICE_LIB_PATH" in (failures.remedy(told) or "")
    assert failures.remedy("error: expected type") is None


def test_everything_is_read(tmp_path: Path) -> None:
    small = _read(tmp_path, SMALL)
    assert (small.name, small.purpose, small.language) == ("small", "testing", "text")
    assert (small.version.least, small.version.greatest) == ((2, 1), (4,))
    assert small.tools["x"].names == ("x-{major}", "x")
    assert [tool.key for tool in small.needed_tools] == ["x"]
    assert small.look.variables == {"X_HOME": ("bin",)}
    assert small.outputs["so"].steps[0].arguments[1] == "-O{level}"
    assert small.options["level"].default == "2"


def test_lists_reports_and_variables_of_the_tools_are_read(tmp_path: Path) -> None:
    content = SMALL.replace('default = "2"', 'default = "2"\nlist = true')
    content = content.replace('format = "so"', 'format = "so"\nreport = true')
    content = content.replace('language = "text"', 'language = "text"\nenvironment = ["X_FLAGS"]')
    small = _read(tmp_path, content)
    assert small.options["level"].is_list and small.outputs["so"].has_report
    assert small.environment == ("X_FLAGS",)
    plain = _read(tmp_path, SMALL)
    assert not plain.options["level"].is_list and not plain.outputs["so"].has_report
    assert plain.environment == ()


def test_programs_of_the_package_are_named_by_their_folder(tmp_path: Path) -> None:
    content = SMALL.replace('"--version"', '"{package}/toolchain/run.py"')
    (path,) = _read(tmp_path, content).version.arguments
    assert Path(path).is_file()


def test_older_tools_get_further_arguments(tmp_path: Path) -> None:
    further = 'suffix = "out"\nbefore.9 = ["-nine"]\nbefore.7 = ["-seven"]'
    step = _read(tmp_path, SMALL.replace('suffix = "out"', further)).steps["go"]
    for version, wanted in (((9, 0), ()), ((8, 9), ("-nine",)), ((6,), ("-nine", "-seven"))):
        assert step.for_version(version).arguments == (*step.arguments, *wanted)


def test_without_a_needed_tool_all_count(tmp_path: Path) -> None:
    content = SMALL.replace('names = ["x-{major}", "x"]', 'names = ["x"]\nneeded = false')
    assert [tool.key for tool in _read(tmp_path, content).needed_tools] == ["x", "y"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('purpose = "testing"', "", "^purpose is missing"),
        ('purpose = "testing"', "purpose = 3", "^purpose must be a string, not 3"),
        ('purpose = "testing"', 'purpose = "a"\nbanana = 1', "^banana is not a key"),
        ('least = "2.1"', "", r"^version\.least is missing"),
        ('least = "2.1"', 'least = "two"', r"^version\.least must be a version such as"),
        (r"(\d+\.\d+)", "1", r"^version\.pattern must have one group"),
        ("pattern = 'version", "pattern = '[version", r"^version\.pattern is not a regular expr"),
        ('names = ["y"]', "names = []", r"^tools\.y\.names must not be empty"),
        ('names = ["y"]', 'names = ["y"]\nsize = 1', r"^tools\.y\.size is not a key"),
        ('steps = ["go"]', 'steps = ["gone"]', r"^outputs\.so\.steps names 'gone'"),
        (
            'steps = ["go"]',
            'steps = ["go"]\njoins_parts = true',
            r"^outputs\.so\.joins_parts needs a last step with the argument \{input\}, and a st",
        ),
        ('"{input}"', '"{inptu}"', r"^steps\.go\.arguments has a hole \{inptu\} that nothing"),
        ('default = "2"', 'default = "2"\nlisting = ["{z}"]', r"^options\.level\.listing has a h"),
        ('default = "get x"', 'debian = "get x"', r"^install\.default is missing"),
        ('suffix = "out"', "", r"^steps\.go\.suffix is missing"),
        (
            'suffix = "out"',
            'suffix = "out"\nbefore.new = []',
            r"^steps\.go\.before\.new must be a maj",
        ),
        (
            'suffix = "out"',
            'suffix = "out"\nbefore.9 = ["{q}"]',
            r"^steps\.go\.before\.9 has a hole",
        ),
        ("[install]", "[failures]\nline = 'x'\n[install]", r"^failures\.line must have one group"),
        ("X_HOME = [", "X_HOME = [1, ", r"^look\.variables\.X_HOME must be an array of strings"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(UserError, match=message) as caught:
        _read(tmp_path, SMALL.replace(old, new))
    path = str(tmp_path / "small.toml")
    assert caught.value.where == path or caught.value.at.place.startswith(f"{path}:")


@pytest.mark.parametrize("name", toolchain_names())
def test_the_files_that_are_shipped(name: str) -> None:
    description = load_description(name)
    assert description.name == name
    assert description.purpose
    assert load_description(name) is description
    assert name in toolchain_names()


def test_llvm_has_the_promised_outputs() -> None:
    llvm = load_description("llvm")
    formats = {key: output.format for key, output in llvm.outputs.items()}
    assert formats == {"so": "so", "o": "o", "bc": "bc", "asm": "s", "ll": "ll"}
    assert {"libm", "libmvec", "libgomp", "libgcc_s"} <= set(llvm.files)


@pytest.mark.parametrize("name", ["banana", "../setup", "", "llvm.toml"])
def test_an_unknown_name_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(UserError, match="is not a toolchain") as caught:
        load_description(name)
    assert ", ".join(toolchain_names()) in str(caught.value)


def test_an_output_that_joins_parts_has_two_halves() -> None:
    output = load_description("llvm").outputs["so"]
    assert [step.key for step in output.of_part.steps] == ["optimize", "emit_object"]
    assert output.of_part.format == "o" and not output.of_part.joins_parts
    assert [step.key for step in output.of_all_parts.steps] == ["link"]
    assert output.of_all_parts.format == "so"


def test_an_output_with_a_report_joins_no_parts(tmp_path: Path) -> None:
    two_steps = 'steps = ["go", "go"]\nreport = true\njoins_parts = true'
    with pytest.raises(UserError, match=r"^outputs\.so\.joins_parts does not go with a report"):
        _read(tmp_path, SMALL.replace('steps = ["go"]', two_steps))
