"""`refcomp emulate` runs a kernel of a PTX file on arrays from files."""

import json
import shlex

import numpy as np
import pytest

# c[i] = a[i] + b, for i < n; blocks along x.
_SHIFT = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry shift(
    .param .u64 .ptr .global .align 4 a, .param .u64 c, .param .f32 b, .param .u32 n)
.maxntid 128
{
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [c];
    ld.param.f32 %f1, [b];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra $done;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    add.rn.f32 %f3, %f2, %f1;
    st.global.f32 [%rd5], %f3;
$done:
    ret;
}
"""
_OTHER = """
.visible .entry spin(.param .align 8 .b8 how[24])
{
    .shared .align 4 .b8 tile[512];
$again:
    bra $again;
}
"""
_TEXTURED = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry textured()
{
    .reg .f32 %f<5>; .reg .b64 %rd<2>;
    mov.u64 %rd1, 0;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {0}];
    ret;
}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "k.ptx").write_text(_SHIFT)
    (tmp_path / "all.ptx").write_text(_SHIFT + _OTHER)
    (tmp_path / "textured.ptx").write_text(_TEXTURED)
    np.save(tmp_path / "a.npy", np.arange(100, dtype=np.float32))
    np.save(tmp_path / "c.npy", np.zeros(100, np.float32))
    return tmp_path


def _arguments(files, n="n:u32=100"):
    texts = (files / "a.npy", f"out:{files / 'c.npy'}", "b:f32=0.5", n)
    return [word for text in texts for word in ("--arg", text)]


_SHAPE = ("--grid", "2", "--block", "64")


def test_a_kernel_writes_its_outputs(cli, files):
    result = cli("emulate", files / "k.ptx", *_SHAPE, *_arguments(files), "--hazards")
    assert result.exit_code == 0, result.stderr
    assert "c.npy: f32[100]" in result.stdout
    assert (np.load(files / "c.npy") == np.arange(100) + 0.5).all()


def test_the_help_page_speaks_of_both_vendors(cli):
    told = " ".join(cli("emulate", "--help").stdout.split())
    for text in (
        "How many groups (NVIDIA: blocks) to run",
        "local:256, in a code object:",
        "when no thread has, summed over the warps",
        "NVIDIA GPUs: read-only and races; waits, barriers and alignment are checked in any case",
        "LLVM IR and machine code (NVIDIA: PTX) side by side",
    ):
        assert text in told


def test_ptx_from_the_standard_input_runs(cli, files):
    told = cli("emulate", "-", *_SHAPE, *_arguments(files), "--json", input=_SHIFT)
    report = json.loads(told.stdout)
    assert (report["kernel"], report["findings"]) == ("shift", [])
    assert report["steps"] > 0 and report["outputs"][0]["name"].endswith("c.npy")


def test_what_was_never_compared_is_told(cli, files, monkeypatch):
    assert (
        "never compared" not in cli("emulate", files / "k.ptx", *_SHAPE, *_arguments(files)).stdout
    )
    seen = []

    def odd(instructions):
        seen.extend(one.text for one in instructions)
        return ("odd with sat",)

    monkeypatch.setattr("refcomp.cli.ptx_kernels.not_compared_in", odd)
    result = cli("emulate", files / "all.ptx", "--kernel", "shift", *_SHAPE, *_arguments(files))
    assert "never compared with a reference: odd with sat\n" in result.stdout
    assert "add.rn.f32 %f3, %f2, %f1" in seen and "bra $again" not in seen


def test_findings_name_the_line_and_end_with_1(cli, files):
    result = cli("emulate", files / "k.ptx", *_SHAPE, *_arguments(files, "n:u32=101"))
    assert result.exit_code == 1
    assert "out of bounds: reads 4 bytes that end 4 bytes behind the argument a" in result.stdout
    assert "    by ld.global.f32 %f2, [%rd4]\n    in line 23 of the PTX" in result.stdout
    assert "kernel shift, block (1, 0, 0), thread (36, 0, 0)" in result.stdout


def test_arrays_that_are_only_read_must_not_be_written_if_hazards_are_looked_for(cli, files):
    words = [str(word).replace("out:", "") for word in _arguments(files)]
    arguments = (files / "k.ptx", *_SHAPE, *words)
    result = cli("emulate", *arguments)
    assert result.exit_code == 0 and "say which array it writes, out:FILE.npy" in result.stderr
    for more in (["--hazards"], ["--hazard", "read-only"]):
        result = cli("emulate", *arguments, *more)
        assert result.exit_code == 1 and "read-only: writes to the argument c" in result.stdout
    assert cli("emulate", *arguments, "--hazard", "waits").exit_code == 0


def test_a_kernel_without_end_is_given_up(cli, files):
    text = (_SHIFT + _OTHER).replace(".param .align 8 .b8 how[24]", "")
    (files / "spin.ptx").write_text(text)
    options = ("--kernel", "spin", "--grid", "1", "--block", "32", "--max-steps", "50")
    result = cli("emulate", files / "spin.ptx", *options)
    assert result.exit_code == 1 and "endless: no thread of any warp has ended" in result.stdout
    assert "function spin; kernel spin" in result.stdout


def test_an_argument_of_another_size_is_refused(cli, files):
    options = ("--kernel", "spin", "--grid", "1", "--block", "32")
    result = cli("emulate", files / "all.ptx", *options, "--arg", "how:f64=1")
    assert result.exit_code == 4 and "the parameter how has 24 bytes, not 8" in result.stderr
    assert "give a number of 24 bytes" in result.stderr


def test_kernels_are_listed_with_their_arguments_and_an_example(cli, files, monkeypatch):
    listed = cli("emulate", files / "all.ptx").stdout.splitlines()
    assert listed[0].endswith("all.ptx, for sm_70:")
    assert listed[1] == "  shift: blocks of at most 128 threads"
    assert listed[6] == "  spin: blocks of at most 1024 threads, 512 bytes of shared memory"
    assert [line.split() for line in listed[2:6]] == [
        ["a", "array", "(u64)", "out:a.npy"],
        ["c", "array,", "or", "a", "number", "of", "8", "bytes", "(u64)", "out:c.npy"],
        ["b", "4", "bytes", "(f32)", "b:f32=1"],
        ["n", "4", "bytes", "(u32)", "n:u32=1"],
    ]
    assert "EmulatedNvidiaGpu.run takes a numpy.void" in listed[7]
    assert listed[8].startswith("arguments, in this order") and "local" not in listed[8]
    told = json.loads(cli("emulate", files / "k.ptx", "--json").stdout)
    assert told["gpu"] == "sm_70" and told["kernels"][0]["max_threads"] == 128
    monkeypatch.chdir(files)
    example = cli("emulate", "k.ptx").stdout.splitlines()[-1]
    result = cli(*shlex.split(example)[1:])
    assert result.exit_code == 0, result.stderr
    assert np.load("c.npy")[:2].tolist() == [1, 0]


@pytest.mark.nvcc
def test_a_profile_counts_and_estimates(cli, files):
    """Of 17 instructions, 11 run in all 128 threads, the others where there is an element."""
    page = files / "page.html"
    arguments = (files / "k.ptx", *_SHAPE, *_arguments(files))
    result = cli("emulate", *arguments, f"--profile={page}", "--card", "L4")
    assert result.exit_code == 0, result.stderr
    head = "kernel shift on sm_89: 1 launch, 2 blocks, 4 warps of 32; 0 multiply-adds; 92.3%"
    assert head in result.stdout and "instructions of warps, by class" in result.stdout
    assert "global memory, sectors of 32 bytes" in result.stdout
    assert "estimate for one launch on L4, not a time that was measured" in result.stdout
    words = " ".join(result.stdout.split())
    assert "by ptxas for sm_89; estimate: a multiprocessor holds at a time: 24 blocks" in words
    text = page.read_text()
    assert 'data-pane="PTX"' in text and "warps of 32 lanes" in text
    told = json.loads(cli("emulate", *arguments, "--profile", "--json").stdout)
    (profile,) = told["profile"]
    assert (profile["gpu"], profile["estimate"]["card"]) == ("sm_70", "V100 SXM2")
    load, store = profile["accesses"]
    assert (load["waves"], load["lanes"], load["transactions"]) == (4, 100, 13)
    assert store["is_store"] and store["least"] == 13


def test_what_occupancy_lacks_is_told(cli, files, monkeypatch):
    lack = "not known without ptxas"
    monkeypatch.setattr("refcomp.profile.occupancy._records", lambda ptx, arch: ((), lack))
    arguments = (files / "k.ptx", *_SHAPE, *_arguments(files))
    page = files / "page.html"
    result = cli("emulate", *arguments, f"--profile={page}")
    assert f"registers and occupancy: {lack}" in result.stdout
    assert lack in page.read_text()


def test_wrong_requests_are_refused(cli, files):
    kernel, given = files / "k.ptx", _arguments(files)
    (files / "damaged.ptx").write_text(_SHIFT.replace("add.rn.f32 %f3, %f2, %f1;", "add %f3 %f2"))
    (files / "empty.ptx").write_text("")
    array, out, number, count = (given[k : k + 2] for k in range(0, 8, 2))
    cases = [
        (
            (kernel, *_SHAPE, *given, "--kernel", "shft"),
            4,
            "did you mean shift? name one of: shift",
        ),
        ((files / "all.ptx", *_SHAPE, *given), 4, "by --kernel: shift, spin"),
        ((kernel, *_SHAPE, "--arg", "x"), 4, "such as n:i32=1000\n"),
        ((kernel, *_SHAPE, *array), 4, "shift takes 4 arguments (a: 8 bytes, c: 8 bytes, b: 4"),
        ((kernel, *_SHAPE, *number, *out, *array, *count), 4, "a is an array, not a number"),
        ((kernel, *_SHAPE, *array, *out, *array, *count), 4, "the parameter b has 4 bytes, not 8"),
        ((kernel, *_SHAPE, *array, *out, "--arg", "b:f64=1", *count), 4, "has 4 bytes, not 8"),
        ((kernel, *_SHAPE, *array, *out, *number, "--arg", "local:64"), 4, "give --shared 64"),
        ((kernel, "--grid", "1", "--block", "256", *given), 4, "at most 128 (.maxntid)"),
        ((kernel, *_SHAPE, *given, "--hazard", "wait-states"), 4, "not a hazard of NVIDIA GPUs"),
        ((kernel, *_SHAPE, *given, "--profile=-", "--card", "MI210"), 4, "PTX is for sm_70, the"),
        (
            (kernel, *_SHAPE, *given, "--profile=-", "--card", "B300"),
            4,
            "no figures of the card 'B300'",
        ),
        ((kernel, *_SHAPE, *given, "--gpu", "gfx942"), 2, "this is a file of kernels"),
        ((files / "damaged.ptx", *_SHAPE, *given), 4, "expected ; behind add, not '%f2'"),
        ((files / "damaged.ptx", *_SHAPE, *given), 4, "damaged.ptx, line 24"),
        ((files / "empty.ptx", *_SHAPE, *given), 4, "empty.ptx, "),
        ((files / "textured.ptx", *_SHAPE), 5, "textured.ptx, line 9: tex.1d.v4.f32.s32"),
    ]
    for arguments, code, message in cases:
        result = cli("emulate", *arguments)
        assert result.exit_code == code and message in result.stderr, (message, result.stderr)
        assert "Traceback" not in result.stderr


def test_files_without_kernels_are_refused(cli, files):
    head = ".version 8.0\n.target sm_70\n.address_size 64\n"
    functions = "".join(f".func f{number}() {{ ret; }}\n" for number in range(6))
    (files / "none.ptx").write_text(head)
    (files / "functions.ptx").write_text(head + functions)
    for name, defined in (
        ("none.ptx", "defines no function\n"),
        ("functions.ptx", "defines f0, f1, f2, f3, f4, ...\n"),
    ):
        for arguments in ((), _SHAPE, (*_SHAPE, "--kernel", "f0"), ("--kernel", "f0")):
            result = cli("emulate", files / name, *arguments)
            assert result.exit_code == 4 and f"{name} has no kernel\n" in result.stderr
            assert f"begins with .entry, and the file {defined}" in result.stderr
            assert "declare the function as __global__ in CUDA C" in result.stderr
    told = json.loads(cli("emulate", files / "none.ptx", "--json").stderr)
    assert told["error"]["what"].endswith("has no kernel")


def test_machine_code_is_refused_and_the_way_to_ptx_is_told(cli, files):
    elf = b"\x7fELF" + bytes(14)
    (files / "k.cubin").write_bytes(elf + (190).to_bytes(2, "little"))
    (files / "k.o").write_bytes(elf + (62).to_bytes(2, "little") + b"\0.nv_fatbin\0")
    (files / "k.fatbin").write_bytes((0xBA55ED50).to_bytes(4, "little") + bytes(60))
    for name, what in (
        ("k.cubin", "k.cubin is machine code for NVIDIA GPUs (a cubin)"),
        ("k.o", "k.o holds code for NVIDIA GPUs in a fatbin"),
        ("k.fatbin", "k.fatbin holds code for NVIDIA GPUs in a fatbin"),
    ):
        result = cli("emulate", files / name)
        assert result.exit_code == 4 and what in result.stderr
        assert "cuobjdump -xptx all FILE" in result.stderr and "nvcc -ptx" in result.stderr


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("mov.u32 %r2, %pm0;", "mov.u32 %r2, %pm0"),
        ("call f, (%r2);", "call f, (%r2)"),
        ("mov.b128 %q, %q;", "mov.b128 %q, %q"),
        ("trap;", "trap"),
        ("bar.sync 77;", "bar.sync 77"),
    ],
)
def test_errors_of_a_run_name_the_file_and_the_line(cli, files, body, line):
    """Not only those that are found when the file is read."""
    head = ".version 8.3\n.target sm_70\n.address_size 64\n.func f(.param .b32 a) { ret; }\n"
    kernel = f".entry k()\n{{\n.reg .b32 %r<3>; .reg .b128 %q;\nmov.u32 %r2, 0;\n{body}\nret;\n}}"
    (files / "k.ptx").write_text(head + kernel)
    result = cli("emulate", files / "k.ptx", "--grid", "1", "--block", "1")
    assert result.exit_code in (4, 5), result.stderr
    assert f"  where: {files / 'k.ptx'}, line 9: {line}\n" in result.stderr


def test_memory_that_a_kernel_did_not_free_is_a_note(cli, files):
    head = ".version 8.0\n.target sm_70\n.address_size 64\n"
    declared = ".extern .func (.param .b64 result) malloc (.param .b64 size);\n"
    call = (
        ".param .b64 a; .param .b64 b; st.param.b64 [a], 24; call.uni (b), malloc, (a); "
        "ld.param.b64 %rd1, [b];"
    )
    (files / "k.ptx").write_text(f"{head}{declared}.entry k() {{ .reg .b64 %rd<2>; {call} ret; }}")
    for block, what in (("1", "1 piece of memory that"), ("2", "2 pieces of memory that")):
        arguments = ("emulate", files / "k.ptx", "--grid", "1", "--block", block)
        result = cli(*arguments)
        assert result.exit_code == 0, result.stderr
        assert f"the kernel did not free {what} malloc returned ({24 * int(block)} bytes)" in (
            result.stderr
        )
        (told,) = json.loads(cli(*arguments, "--json").stdout)["notes"]
        assert what in told


def test_texture_references_are_refused(cli, files):
    (files / "t.ptx").write_text(_SHIFT.replace(".visible", ".global .texref pic;\n.visible"))
    result = cli("emulate", files / "t.ptx")
    assert result.exit_code == 5 and "textures, samplers and surfaces" in result.stderr


@pytest.mark.parametrize("place", range(40, len(_SHIFT), 97))
def test_damaged_files_are_refused_or_run(cli, files, place):
    (files / "k.ptx").write_text(_SHIFT[:place] + "\x00\xff" + _SHIFT[place + 3 :])
    result = cli("emulate", files / "k.ptx", *_SHAPE, *_arguments(files))
    assert result.exit_code in (0, 1, 4, 5), result.stderr
    assert "Traceback" not in result.stderr
