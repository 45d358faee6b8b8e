"""Text becomes machine code once, by real and by fake tools, in one and in two processes."""

import ctypes
import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.cache import Cache, default_cache
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain import compile as compile_module
from refcomp.toolchain.compile import compile_source, compile_with_report
from refcomp.toolchain.description import Description, load_description, read_description
from refcomp.toolchain.host import host_triple_and_layout

FAKE_SOURCE = Source("some text", "llvm")
_ADD = """\
define i32 @add(ptr %a, ptr %b, ptr %c, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %exit
body:
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %pc = getelementptr float, ptr %c, i64 %i
  %x = load float, ptr %pa, align 4
  %y = load float, ptr %pb, align 4
  %s = fadd float %x, %y
  store float %s, ptr %pc, align 4
  %next = add i64 %i, 1
  br label %head
exit:
  ret i32 0
}
"""


def _source(text: str, **fields: object) -> Source:
    triple, layout = host_triple_and_layout()
    header = f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'
    return Source(header + text, "llvm", **fields)  # type: ignore[arg-type]


def _needed(binary: Binary) -> set[str]:
    section = ELFFile(io.BytesIO(binary.data)).get_section_by_name(".dynamic")
    return {tag.needed for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED"}


def _load(binary: Binary, folder: Path) -> ctypes.CDLL:
    path = folder / "module.so"
    path.write_bytes(binary.data)
    return ctypes.CDLL(str(path))


# ---- what is refused before any tool runs ----------------------------------------------------


def test_a_foreign_language_is_refused() -> None:
    with pytest.raises(UserError, match="the llvm toolchain takes llvm, not cuda"):
        compile_source(Source("", "cuda"), {}, "so")
    with pytest.raises(UserError, match="the cuda toolchain takes cuda, not llvm"):
        compile_source(Source("", "llvm"), {}, "cubin", description="cuda")


def test_a_toolchain_of_a_users_own_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = load_description("llvm").path.read_text(encoding="utf-8")
    path.write_text(text.replace('language = "llvm"', 'language = "mine"'), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        compile_source(FAKE_SOURCE, {}, "so", description=read_description(path))
    assert str(caught.value).startswith("the mine toolchain takes mine, not llvm")
    assert caught.value.where == str(path)


def test_an_unknown_output_is_refused() -> None:
    with pytest.raises(UserError, match="no output 'exe'") as caught:
        compile_source(FAKE_SOURCE, {}, "exe")
    assert "use one of so, o, bc, asm, ll" in str(caught.value)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UserError, match="no option 'mcpy'") as caught:
        compile_source(FAKE_SOURCE, {"mcpy": "native"}, "so")
    assert "-mcpy=native" in str(caught.value)
    assert "use mcpu, mattr, mtriple, passes" in str(caught.value)


def test_an_unknown_toolchain_is_refused() -> None:
    with pytest.raises(UserError, match="'banana' is not a toolchain"):
        compile_source(FAKE_SOURCE, {}, "so", description="banana")


# ---- the cache, with fake tools --------------------------------------------------------------


def _runs(fake_tools) -> list[str]:
    return [start.split()[0] for start in fake_tools.starts() if "--version" not in start]


def test_a_hit_starts_no_tool(fake_tools, as_another_process) -> None:
    fake_tools.add_all()
    first = compile_source(FAKE_SOURCE, {}, "so")
    assert first == Binary(b"some text", "so")
    assert _runs(fake_tools) == ["opt", "llc", "ld.lld"]
    starts = fake_tools.starts()
    as_another_process()
    assert compile_source(FAKE_SOURCE, {}, "so") == first
    assert fake_tools.starts() == starts


@pytest.mark.search
@pytest.mark.parametrize(
    ("source", "options", "output"),
    [
        (Source("other text", "llvm"), {}, "so"),
        (Source("some text", "llvm", (), frozenset({"libm"})), {}, "so"),
        (FAKE_SOURCE, {"mattr": "+x"}, "so"),
        (FAKE_SOURCE, {"passes": "sroa"}, "so"),
        (FAKE_SOURCE, {}, "o"),
        (FAKE_SOURCE, {}, "asm"),
        (FAKE_SOURCE, {}, "ll"),
    ],
)
def test_another_request_is_compiled_by_itself(
    fake_tools, source: Source, options: dict[str, str], output: str
) -> None:
    fake_tools.add_all()
    compile_source(FAKE_SOURCE, {}, "so")
    before = len(_runs(fake_tools))
    compile_source(source, options, output)
    assert len(_runs(fake_tools)) > before


def test_the_line_map_and_defaults_written_out_change_nothing(fake_tools) -> None:
    fake_tools.add_all()
    compile_source(FAKE_SOURCE, {}, "so")
    compile_source(Source("some text", "llvm", ("a line",)), {"mcpu": "native"}, "so")
    assert len(_runs(fake_tools)) == 3


def test_another_host_is_compiled_for_by_itself(
    fake_tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tools.add_all()
    compile_source(FAKE_SOURCE, {}, "so")
    monkeypatch.setattr(compile_module, "host_part", lambda *arguments: "another machine")
    compile_source(FAKE_SOURCE, {}, "so")
    assert len(_runs(fake_tools)) == 6


def test_replaced_tools_compile_again(fake_tools, as_another_process) -> None:
    fake_tools.add_all()
    compile_source(FAKE_SOURCE, {}, "so")
    fake_tools.add_all(version="20.1.0")
    as_another_process()
    compile_source(FAKE_SOURCE, {}, "so")
    assert len(_runs(fake_tools)) == 6


def test_without_tools_a_warm_cache_serves_and_a_cold_one_is_refused(
    fake_tools, as_another_process
) -> None:
    fake_tools.add_all()
    binary = compile_source(FAKE_SOURCE, {}, "so")
    shutil.rmtree(fake_tools.bin)
    as_another_process()
    assert compile_source(FAKE_SOURCE, {}, "so") == binary
    with pytest.raises(ToolchainError, match="no usable llc, opt") as caught:
        compile_source(FAKE_SOURCE, {}, "asm")
    assert "what to do: " in str(caught.value)
    assert "or set REFCOMP_LLVM" in str(caught.value)


def test_damaged_entries_are_made_again(fake_tools, as_another_process) -> None:
    fake_tools.add_all()
    binary = compile_source(FAKE_SOURCE, {}, "so")
    for path in default_cache().root.glob("entries/*/*"):
        raw = path.read_bytes()
        path.write_bytes(raw[: len(raw) // 2])
    as_another_process()
    assert compile_source(FAKE_SOURCE, {}, "so") == binary
    assert len(_runs(fake_tools)) == 6
    compile_source(FAKE_SOURCE, {}, "so")
    assert len(_runs(fake_tools)) == 6


def test_an_unwritable_cache_does_not_matter(
    fake_tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tools.add_all()
    (tmp_path / "file").touch()
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "file" / "below"))
    for _ in range(2):
        assert compile_source(FAKE_SOURCE, {}, "so").data == b"some text"


def test_the_cache_can_be_given(fake_tools, tmp_path: Path) -> None:
    fake_tools.add_all()
    for folder in ("one", "two", "one"):
        compile_source(FAKE_SOURCE, {}, "so", cache=Cache(tmp_path / folder))
    assert len(_runs(fake_tools)) == 6


_IN_ANOTHER_PROCESS = """
from refcomp.foundation.artifacts import Source
from refcomp.toolchain import compile_source
assert compile_source(Source("some text", "llvm"), {}, "so").data == b"some text"
"""


@pytest.mark.tools
def _reporting(tmp_path: Path, tool: str) -> Description:
    path = tmp_path / "small.toml"
    path.write_text(f"""
purpose = "testing"
language = "text"
environment = ["X_FLAGS"]
look.folders = ["{tmp_path}"]
version = {{ arguments = ["--version"], pattern = '([0-9.]+)', least = "1" }}
tools.x.names = ["{tool}"]
options.parts = {{ default = "1", list = true }}
steps.go = {{ arguments = ["{{x}}", "-p={{parts}}", "-o", "{{output}}"], suffix = "bin" }}
outputs.bin = {{ format = "bin", steps = ["go"], report = true }}
install.default = "get x"
""")
    return read_description(path)


def test_the_report_of_a_tool_is_cached_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "mine"
    body = 'echo "$@" | tee -a log >&2; for last; do :; done; printf "code$X_FLAGS" > "$last"'
    tool.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 1.2 && exit\ncd {tmp_path}\n{body}\n')
    tool.chmod(0o755)
    chain = _reporting(tmp_path, "mine")
    source = Source("text", "text")
    made = compile_with_report(source, {"parts": "8,9"}, "bin", description=chain)
    assert made.binary == Binary(b"code", "bin")
    assert made.report.startswith("-p=8 -p=9 -o ")
    again = compile_with_report(source, {"parts": "8,9"}, "bin", description=chain)
    assert again == made
    assert compile_source(source, {"parts": "8,9"}, "bin", description=chain) == made.binary
    assert len((tmp_path / "log").read_text().splitlines()) == 1
    monkeypatch.setenv("X_FLAGS", "!")  # which the tool reads itself
    other = compile_source(source, {"parts": "8,9"}, "bin", description=chain)
    assert other.data == b"code!"


def test_two_processes_run_the_tools_once(fake_tools) -> None:
    fake_tools.add_all()
    fake_tools.add("opt", body="sleep 0.5\n" + _copy_of(fake_tools))
    command = [sys.executable, "-c", _IN_ANOTHER_PROCESS]
    folder = Path(__file__).parents[2]
    processes = [subprocess.Popen(command, cwd=folder) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert _runs(fake_tools) == ["opt", "llc", "ld.lld"]


def _copy_of(fake_tools) -> str:
    """What the fake tools do by default."""
    return (fake_tools.bin / "llc").read_text().partition("fi\n")[2]


def test_a_hanging_tool_is_killed(fake_tools, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tools.add_all()
    fake_tools.add("llc", body="sleep 600")
    with pytest.raises(ToolchainError, match=r"llc was not done after 0\.2 s") as caught:
        compile_source(FAKE_SOURCE, {}, "so", timeout_s=0.2)
    assert caught.value.kept is not None and caught.value.kept.is_dir()
    monkeypatch.setenv("REFCOMP_TOOL_TIMEOUT", "0.3")
    with pytest.raises(ToolchainError, match=r"llc was not done after 0\.3 s"):
        compile_source(FAKE_SOURCE, {}, "so")


def test_a_required_library_that_nobody_describes(fake_tools) -> None:
    fake_tools.add_all()
    source = Source("some text", "llvm", (), frozenset({"libbanana"}))
    with pytest.raises(ToolchainError, match="needs 'libbanana'") as caught:
        compile_source(source, {}, "so")
    assert "libgomp" in str(caught.value)
    assert compile_source(source, {}, "o").format == "o"


def test_a_required_library_that_is_missing(fake_tools, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tools.add_all()

    def refuse(description: object, name: str) -> str:
        raise ToolchainError(f"{name} was not found", remedy="apt-get install libgomp1")

    monkeypatch.setattr(compile_module, "find_file", refuse)
    source = Source("some text", "llvm", (), frozenset({"libgomp"}))
    with pytest.raises(ToolchainError, match="libgomp was not found") as caught:
        compile_source(source, {}, "so")
    assert "apt-get install libgomp1" in str(caught.value)


# ---- real tools ------------------------------------------------------------------------------


@pytest.mark.llvm
def test_the_code_runs(tmp_path: Path) -> None:
    library = _load(compile_source(_source(_ADD), {}, "so"), tmp_path)
    floats = ctypes.c_float * 37
    a, b, c = floats(*range(37)), floats(*range(100, 137)), floats()
    assert library.add(a, b, c, ctypes.c_int64(37)) == 0
    assert list(c) == [100 + 2 * i for i in range(37)]


@pytest.mark.llvm
def test_every_output() -> None:
    source = _source(_ADD)
    assert compile_source(source, {}, "so").data.startswith(b"\x7fELF")
    assert compile_source(source, {}, "o").data.startswith(b"\x7fELF")
    assembly = compile_source(source, {}, "asm")
    assert (assembly.format, b"add:" in assembly.data) == ("s", True)
    text = compile_source(source, {}, "ll")
    assert (text.format, b"define" in text.data) == ("ll", True)


@pytest.mark.llvm
def test_passes_are_taken() -> None:
    optimised = compile_source(_source(_ADD), {}, "ll").data
    plain = compile_source(_source(_ADD), {"passes": "verify"}, "ll").data
    assert b"x float>" in optimised
    assert b"x float>" not in plain


@pytest.mark.llvm
def test_the_code_fits_the_processor_that_is_asked_for() -> None:
    if not host_triple_and_layout()[0].startswith("x86_64"):
        pytest.skip("names of x86 processors")
    by_cpu = {
        mcpu: compile_source(_source(_ADD), {"mcpu": mcpu}, "asm").data.decode()
        for mcpu in ("nehalem", "haswell")
    }
    assert "ymm" in by_cpu["haswell"]
    assert "ymm" not in by_cpu["nehalem"]


@pytest.mark.llvm
def test_an_unknown_processor_is_refused_with_the_command_that_lists_them() -> None:
    with pytest.raises(UserError, match="mcpu 'banana' is unknown") as caught:
        compile_source(_source(_ADD), {"mcpu": "banana"}, "so")
    assert "-mcpu=help" in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.llvm
def test_an_unknown_processor_is_refused_with_those_of_a_like_name() -> None:
    with pytest.raises(UserError, match="mcpu 'haswel' is unknown") as caught:
        compile_source(_source(_ADD), {"mcpu": "haswel"}, "so")
    assert "haswell" in str(caught.value)


@pytest.mark.llvm
def test_an_unknown_feature_is_refused() -> None:
    with pytest.raises(ToolchainError, match="is not a recognized feature") as caught:
        compile_source(_source(_ADD), {"mattr": "+banana"}, "so")
    assert "'+banana'" in caught.value.stderr


@pytest.mark.llvm
def test_an_error_names_the_statement_behind_the_line() -> None:
    source = _source(_ADD.replace("fadd float", "fadd double"))
    line = next(k for k, text in enumerate(source.text.splitlines()) if "fadd" in text)
    lines = [""] * len(source.text.splitlines())
    lines[line] = "C[i] = A[i] + B[i]"
    with pytest.raises(ToolchainError, match=r"opt.* failed") as caught:
        compile_source(Source(source.text, "llvm", tuple(lines)), {}, "so")
    assert caught.value.where == "C[i] = A[i] + B[i]"
    assert f"kernel.ll:{line + 1}:" in caught.value.stderr
    assert caught.value.kept is not None
    assert (caught.value.kept / "kernel.ll").read_text() == source.text


@pytest.mark.llvm
def test_a_symbol_from_nowhere_is_refused_at_linking() -> None:
    text = "declare void @banana()\ndefine void @f() {\n  call void @banana()\n  ret void\n}\n"
    with pytest.raises(ToolchainError, match=r"ld\.lld.* failed") as caught:
        compile_source(_source(text), {}, "so")
    assert "undefined symbol: banana" in caught.value.stderr


@pytest.mark.llvm
def test_only_libraries_in_use_are_needed(tmp_path: Path) -> None:
    assert _needed(compile_source(_source(_ADD), {}, "so")) == set()
    text = """
declare float @expf(float)
define float @f(float %x) {
  %y = call float @expf(float %x)
  ret float %y
}
"""
    binary = compile_source(_source(text, requires=frozenset({"libm", "libgomp"})), {}, "so")
    assert _needed(binary) == {"libm.so.6"}
    function = _load(binary, tmp_path).f
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    assert function(0.0) == 1.0


@pytest.mark.llvm
def test_what_the_back_end_calls_by_itself_is_linked() -> None:
    if not host_triple_and_layout()[0].startswith("x86_64"):
        pytest.skip("x86 processors without half precision")
    text = "define float @f(half %x) {\n  %y = fpext half %x to float\n  ret float %y\n}\n"
    binary = compile_source(_source(text), {"mcpu": "nehalem"}, "so")
    assert _needed(binary) == {"libgcc_s.so.1"}


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("library", "soname", "text"),
    [
        (
            "libgomp",
            "libgomp.so.1",
            "declare i32 @omp_get_max_threads()\ndefine i32 @f() {\n"
            "  %x = call i32 @omp_get_max_threads()\n  ret i32 %x\n}\n",
        ),
        (
            "libmvec",
            "libmvec.so.1",
            "declare <4 x float> @_ZGVbN4v_expf(<4 x float>)\n"
            "define <4 x float> @f(<4 x float> %x) {\n"
            "  %y = call <4 x float> @_ZGVbN4v_expf(<4 x float> %x)\n  ret <4 x float> %y\n}\n",
        ),
    ],
)
def test_required_libraries_are_linked(library: str, soname: str, text: str) -> None:
    if library == "libmvec" and not host_triple_and_layout()[0].startswith("x86_64"):
        pytest.skip("names of x86 vector functions")
    binary = compile_source(_source(text, requires=frozenset({library})), {}, "so")
    assert _needed(binary) == {soname}
