"""`refcomp emulate --profile`: of code objects and of programs, as tables, JSON and pages."""

import json
import re

import numpy as np
import pytest

from refcomp.cli.profile import is_program
from tests.emulator.kernels import compiled_code

PROGRAM = """
import refcomp as rc

def computation():
    n = rc.var("n")
    a = rc.placeholder((n,), name="A")
    b = rc.compute((n,), lambda i: a[i] * 2.0 + 1.0, name="B")
    s = rc.create_schedule(b)
    outer, inner = s[b].split(b.op.axis[0], factor=64)
    s[b].bind(outer, rc.thread_axis("blockIdx.x"))
    s[b].bind(inner, rc.thread_axis("threadIdx.x"))
    return s, [a, b], "scaled"
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def vector_add(tmp_path):
    """Arguments of the command that run a code object's kernel on 100 elements."""
    (tmp_path / "k.hsaco").write_bytes(compiled_code("vector_add"))
    for name in ("a", "c"):
        np.save(tmp_path / f"{name}.npy", np.ones(100, np.float32))
    texts = (tmp_path / "a.npy", tmp_path / "a.npy", f"out:{tmp_path / 'c.npy'}")
    words = [w for t in (*texts, "n:i64=100", "groups:i64=2") for w in ("--arg", t)]
    return [tmp_path / "k.hsaco", "--grid", "2", "--block", "64", *words]


def test_programs_are_told_from_code_objects():
    assert is_program("a.onnx") and is_program("a.py") and is_program("folder/a.py:name")
    assert not is_program("a.hsaco") and not is_program("-") and not is_program("a.py.hsaco")


@pytest.mark.rocm
def test_a_code_object_is_profiled(cli, vector_add):
    result = cli("emulate", *vector_add, "--profile")
    assert result.exit_code == 0, result.stderr
    assert "c.npy" in result.stdout and "kernel vector_add on gfx942: 1 launch" in result.stdout
    told = json.loads(cli("emulate", *vector_add, "--profile", "--json").stdout)
    (profile,) = told["profile"]
    assert profile["waves"] == 2 and told["steps"] == sum(profile["instructions"].values())
    assert "profile" not in json.loads(cli("emulate", *vector_add, "--json").stdout)


@pytest.mark.rocm
def test_a_code_objects_page(cli, vector_add, tmp_path):
    result = cli("emulate", *vector_add, "--profile", tmp_path / "page.html")
    assert result.exit_code == 0 and "wrote" in result.stderr
    page = (tmp_path / "page.html").read_text()
    assert "global_load_dword" in page and "(not known here)" in page


@pytest.mark.rocm
def test_a_program_is_compiled_and_profiled(cli, program, tmp_path):
    page = tmp_path / "page.html"
    arguments = ("--profile", page, "--symbol", "n=1000", "--contract")
    result = cli("emulate", program, *arguments)
    assert result.exit_code == 0, result.stderr
    assert "1000 multiply-adds" in result.stdout and "16 groups" in result.stdout
    text = page.read_text()
    assert "s[B].bind(i.outer, blockIdx.x)" in text and "for blockIdx.x in range" in text
    told = json.loads(cli("emulate", f"{program}:computation", *arguments[2:], "--json").stdout)
    assert told["profile"][0]["multiply_adds"] == 1000


@pytest.mark.rocm
def test_a_program_is_profiled_for_another_gpu(cli, program):
    arguments = ("--symbol", "n=1000", "--gpu", "gfx1100", "--card", "RX 7900 XTX")
    result = cli("emulate", program, *arguments)
    assert result.exit_code == 0, result.stderr
    assert "on gfx1100: 1 launch, 16 groups, 32 waves of 32" in result.stdout
    assert "estimate for one launch on RX 7900 XTX" in result.stdout


@pytest.mark.llvm
def test_a_program_is_profiled_for_an_nvidia_gpu(cli, program, tmp_path):
    page = tmp_path / "page.html"
    arguments = (program, "--symbol", "n=1000", "--contract", "--card", "a100")
    result = cli("emulate", *arguments, "--profile", page)
    assert result.exit_code == 0, result.stderr
    assert "on sm_80: 1 launch, 16 blocks, 32 warps of 32; 1000 multiply-adds" in result.stdout
    assert "estimate for one launch on A100 SXM" in result.stdout
    text = page.read_text()
    assert "s[B].bind(i.outer, blockIdx.x)" in text and "for blockIdx.x in range" in text
    panes = re.findall('data-pane="([^"]+)">', text)
    assert panes == ["schedule", "loop IR", "LLVM IR", "PTX"]
    told = json.loads(cli("emulate", program, *arguments[1:], "--json").stdout)["profile"][0]
    assert (told["gpu"], told["multiply_adds"]) == ("sm_80", 1000)


@pytest.mark.llvm
def test_hazards_of_a_program_are_looked_for_on_an_nvidia_gpu(cli, program):
    options = ("--symbol", "n=100", "--gpu", "sm_90")
    result = cli("emulate", program, *options, "--hazards")
    assert result.exit_code == 0 and "nothing was found in 1 launch" in result.stderr
    given_up = cli("emulate", program, *options, "--max-steps", "5")
    assert given_up.exit_code == 1
    assert "endless: no thread of any warp has ended for 5 instructions" in given_up.stdout
    wrong = cli("emulate", program, *options, "--hazard", "wait-states")
    assert wrong.exit_code == 4 and "not a hazard of NVIDIA GPUs" in wrong.stderr
    other = cli("emulate", program, "--gpu", "sm_9")
    assert other.exit_code == 4 and "'sm_9' is not an NVIDIA GPU" in other.stderr


@pytest.mark.rocm
def test_a_program_runs_on_given_arrays_and_for_the_gpu_of_a_card(cli, program, tmp_path):
    np.savez(tmp_path / "given.npz", A=np.ones(130, np.float32))
    result = cli("emulate", program, "-i", tmp_path / "given.npz", "--card", "w7900")
    assert result.exit_code == 0, result.stderr
    assert "on gfx1100: 1 launch, 3 groups, 6 waves of 32" in result.stdout
    assert "estimate for one launch on W7900" in result.stdout
    np.savez(tmp_path / "wrong.npz", A=np.ones(130, np.float64))
    wrong = cli("emulate", program, "-i", tmp_path / "wrong.npz")
    assert wrong.exit_code == 4
    assert "array A has dtype float64, expected float32" in wrong.stderr


_TWO_FUNCTIONS = """
import refcomp

def _added(n, names):
    A = refcomp.placeholder((n,), name=names[0])
    B = refcomp.compute((n,), lambda i: A[i] + 1.0, name=names[1])
    return refcomp.topi.schedule_gpu([B]), [A, B], f"of_{names}"

def computation():
    return [_added(64, "AB"), _added(32, "CD")]
"""


@pytest.mark.rocm
def test_each_function_of_a_program_takes_the_given_arrays_that_it_has(cli, tmp_path):
    script, given = tmp_path / "two.py", tmp_path / "given.npz"
    script.write_text(_TWO_FUNCTIONS)
    np.savez(given, A=np.ones(64, np.float32))
    result = cli("emulate", script, "-i", given, "--hazards")
    assert result.exit_code == 0, result.stderr
    assert "nothing was found in 2 launches" in result.stderr
    np.savez(given, C=np.ones(31, np.float32))
    wrong = cli("emulate", script, "-i", given, "--hazards")
    assert wrong.exit_code == 4 and "C" in wrong.stderr
    np.savez(given, Z=np.ones(64, np.float32))
    unknown = cli("emulate", script, "-i", given, "--hazards")
    assert unknown.exit_code == 4 and "unknown input 'Z'" in unknown.stderr


@pytest.mark.rocm
def test_wrong_requests_are_refused(cli, program, vector_add, tmp_path):
    cases = [
        ((*vector_add, "--profile", tmp_path / "page.txt"), 2, "is not a page"),
        ((program, "--profile", tmp_path / "no" / "page.html"), 2, "does not exist"),
        (("--profile", *vector_add), 2, "give --profile last, or as --profile=-"),
        ((*vector_add, "--card", "MI300X"), 2, "--card: an estimate is part of a profile; add"),
        ((*vector_add, "--profile", "--card", "B300"), 4, "no figures of the card 'B300'"),
        (
            (program, "--gpu", "gfx1100", "--card", "MI210"),
            4,
            "the card MI210 has gfx90a\n"
            "  what to do: use RX 7900 XTX or RX 7900 XT or W7900; or compile for gfx90a",
        ),
        (
            (program, "--gpu", "gfx943"),
            4,
            "the emulator does not support gfx943\n  what to do: did you mean gfx942 or gfx90a?",
        ),
        (
            (program, "-i", tmp_path / "no.npz"),
            4,
            "no.npz cannot be read\n  why: No such file or directory",
        ),
        ((program, "--hazard", "races", "--arg", "a.npy"), 2, "--arg: for a file of kernels only"),
        ((program, "--hazards", "--card", "MI300X"), 2, "--card: an estimate is part of a"),
        (
            (program, "--grid", "1", "--block", "2", "--max-steps", "9"),
            2,
            "--grid, --block: for a",
        ),
        (
            (program, "--kernel", "k", "--shared", "0"),
            2,
            "--kernel, --shared: for a file of kernels",
        ),
        ((*vector_add, "--contract", "--seed", "0"), 2, "--contract, --seed: for a program only"),
        ((*vector_add, "--gpu", "gfx90a", "--symbol", "n=2"), 2, "--gpu, --symbol: for a program"),
        ((*vector_add, "-i", "a.npz"), 2, "-i: for a program only, this is a file of kernels"),
        ((vector_add[0], *vector_add[5:]), 2, "--grid and --block say how a kernel is launched"),
    ]
    for arguments, code, message in cases:
        result = cli("emulate", *arguments)
        assert result.exit_code == code and message in result.stderr, result.stderr


@pytest.mark.rocm
def test_a_program_that_launches_nothing_is_told_of(cli, program):
    result = cli("emulate", program, "--symbol", "n=0")
    assert result.exit_code == 4 and "no kernel was launched" in result.stderr, result.stderr


_RACES = """
import refcomp as rc

TEXT = '''
func sums(A: f32[256], B: f32[256] out) {
  for g in range(4) blockIdx.x { for t in range(64) threadIdx.x { B[PLACE] = A[g * 64 + t] } }
}
'''

def right():
    return rc.parse_func(TEXT.replace("PLACE", "g * 64 + t"))

def wrong():
    return rc.parse_func(TEXT.replace("PLACE", "t"))

def both():
    return [wrong(), right()]
"""


@pytest.mark.rocm
def test_hazards_of_a_program_are_looked_for(cli, tmp_path):
    path = tmp_path / "races.py"
    path.write_text(_RACES)
    wrong = cli("emulate", f"{path}:wrong", "--hazards", "--gpu", "gfx1100")
    assert wrong.exit_code == 1, wrong.stderr
    assert wrong.stdout.startswith("race: ") and "kernels.ir:" in wrong.stdout
    assert "multiply-adds" not in wrong.stdout
    waits = cli("emulate", f"{path}:wrong", "--hazard", "waits")
    assert (waits.exit_code, waits.stdout) == (0, "")
    right = cli("emulate", f"{path}:right", "--hazards")
    assert (right.exit_code, right.stdout) == (0, "")
    assert "nothing was found in 1 launch of kernels" in right.stderr
    found = json.loads(cli("emulate", f"{path}:both", "--hazards", "--json").stdout)
    assert found["launches"] == 1 and len(found["findings"]) == 1 and "profile" not in found


@pytest.mark.rocm
def test_a_program_may_be_profiled_and_looked_for_hazards_at_once(cli, tmp_path):
    path = tmp_path / "races.py"
    path.write_text(_RACES)
    result = cli("emulate", f"{path}:both", "--hazards", "--profile", "--card", "MI300X")
    assert result.exit_code == 1
    assert "kernel sums_kernel0 on gfx942: 1 launch" in result.stdout
    assert "race: " in result.stdout


@pytest.mark.rocm
def test_a_program_that_is_given_up_ends_with_1(cli, program):
    arguments = (program, "--symbol", "n=100", "--max-steps", "5", "--no-checks")
    result = cli("emulate", *arguments)
    assert result.exit_code == 1
    assert "endless: no wave has ended for 5 instructions" in result.stdout


@pytest.mark.rocm
def test_the_card_is_asked_for_before_anything_runs(cli, vector_add, program, monkeypatch):
    for name in ("refcomp.emulator.EmulatedGpu.run", "refcomp.cli.profile.load_program"):
        monkeypatch.setattr(name, lambda *given, **options: pytest.fail("it ran"))
    for arguments in ((*vector_add, "--profile", "--card", "B300"), (program, "--card", "B300")):
        assert cli("emulate", *arguments).exit_code == 4


@pytest.mark.rocm
def test_a_model_is_profiled_kernel_by_kernel(cli, tmp_path):
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    from tests.frontend.models import make_model, single  # noqa: PLC0415  (needs onnx)

    page, model = tmp_path / "page.html", tmp_path / "model.onnx"
    # The first two nodes are equal: they are two launches of one kernel.
    inner = (("x", "g"), ("g", "h"))
    nodes = [single("MatMul", start, "w", outputs=(end,)) for start, end in inner]
    nodes.append(single("MatMul", "h", "last"))
    weights = {"w": np.ones((8, 8), np.float32), "last": np.ones((8, 4), np.float32)}
    onnx.save(make_model(nodes, {"x": ["n", 8]}, ["y"], weights), model)
    result = cli("emulate", model, "--symbol", "n=3", "--profile", page)
    assert result.exit_code == 0, result.stderr
    assert "kernels, all launches; microseconds at least by an estimate" in result.stdout
    assert " on gfx942: " not in result.stdout  # tables of single kernels: the page has them
    assert "layers on MI300X; microseconds at least by an estimate" in result.stdout
    assert page.read_text().count('<section class="kernel"') == 2
    assert page.read_text().count("<caption>layers on MI300X") == 1
    assert f"<h1>profile of {model} on gfx942</h1>" in page.read_text()
    assert "what to do:" not in page.read_text() and 'class="remedy"' in page.read_text()
    given = ("--symbol", "n=3", "--json", "--card", "MI300A", "--contract")
    told = json.loads(cli("emulate", model, *given).stdout)
    shown = cli("emulate", model, "--symbol", "n=3").stdout
    assert shown.count(" on gfx942: 2 launches") == 1
    assert shown.count(" on gfx942: 1 launch,") == 1
    names = [one["kernel"] for one in told["profile"]]
    assert [one["layer"] for one in told["layers"]] == ["g", "h", "y"]
    first, second, last = told["layers"]
    assert {**first, "layer": "h"} == second
    assert first["seconds"] > 0 and first["limit"] and last["multiply_adds"] == 3 * 8 * 4
    assert len(names) == 2 and all("matmul" in name.lower() for name in names)


@pytest.mark.llvm
def test_a_model_is_profiled_for_an_nvidia_gpu(cli, tmp_path):
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    from tests.frontend.models import make_model, single  # noqa: PLC0415  (needs onnx)

    page, model = tmp_path / "page.html", tmp_path / "model.onnx"
    nodes = [single("MatMul", "x", "w", outputs=("g",)), single("Relu", "g")]
    weights = {"w": np.ones((8, 8), np.float32)}
    onnx.save(make_model(nodes, {"x": ["n", 8]}, ["y"], weights), model)
    options = ("--symbol", "n=3", "--card", "L4", "--contract")
    result = cli("emulate", model, *options, "--profile", page)
    assert result.exit_code == 0, result.stderr
    assert "layers on L4; microseconds at least by an estimate" in result.stdout
    assert f"<h1>profile of {model} on sm_89</h1>" in page.read_text()
    told = json.loads(cli("emulate", model, *options, "--json").stdout)
    assert sum(layer["multiply_adds"] for layer in told["layers"]) == 3 * 8 * 8


@pytest.mark.rocm
def test_a_model_of_integers_with_several_outputs_runs_on_given_arrays(cli, tmp_path):
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    from tests.frontend.models import make_model, single  # noqa: PLC0415  (needs onnx)

    model, given = tmp_path / "model.onnx", tmp_path / "ids.npz"
    nodes = [
        single("Gather", "table", "ids", outputs=("rows",)),
        single("MatMul", "rows", "w", outputs=("y",)),
        single("ReduceMean", "y", outputs=("z",), axes=[1]),
    ]
    weights = {"table": np.ones((20, 32), np.float32), "w": np.ones((32, 16), np.float32)}
    made = make_model(nodes, {"ids": ["batch", 7]}, ["y", "z"], weights)
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    onnx.save(made, model)
    np.savez(given, ids=np.arange(21).reshape(3, 7))
    page = tmp_path / "page.html"
    result = cli("emulate", model, "-i", given, "--card", "MI250X", "--profile", page)
    assert result.exit_code == 0, result.stderr
    assert "layers on MI250X; " in result.stdout and "gfx90a" in page.read_text()
    told = json.loads(cli("emulate", model, "-i", given, "--contract", "--json").stdout)
    assert [one["layer"] for one in told["layers"]] == ["y", "z"]
    assert told["layers"][0]["multiply_adds"] == 21 * 32 * 16
    for arrays, message in (
        ({"idz": np.zeros((3, 7), int)}, "unknown input 'idz'\n  what to do: did you mean ids?"),
        ({"ids": np.zeros((3, 8), int)}, "has shape (3, 8), expected (batch, 7) = (3, 7)"),
        ({"ids": np.zeros((3, 7), np.int32)}, "array ids has dtype int32, expected int64"),
    ):
        np.savez(given, **arrays)
        wrong = cli("emulate", model, "-i", given)
        assert wrong.exit_code == 4 and message in wrong.stderr, wrong.stderr


@pytest.mark.rocm
def test_an_lstm_is_one_layer_or_one_of_each_step_if_steps_are_symbolic(cli, tmp_path):
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    from tests.frontend.models import make_model, single  # noqa: PLC0415  (needs onnx)

    model = tmp_path / "lstm.onnx"
    outputs = ("y", "last", "cell")
    node = single("LSTM", "x", "w", "r", outputs=outputs, hidden_size=4)
    weights = {"w": np.ones((1, 16, 3), np.float32), "r": np.ones((1, 16, 4), np.float32)}

    def layers(steps: object, *options: str) -> list[dict[str, object]]:
        onnx.save(make_model([node], {"x": [steps, 2, 3]}, outputs, weights), model)
        result = cli("emulate", model, *options, "--json")
        assert result.exit_code == 0, result.stderr
        told = json.loads(result.stdout)
        functions = [one["kernel"].rpartition("_")[0] for one in told["profile"]]
        return [one for one in told["layers"] if functions.count(one["function"]) > 3]

    (layer,) = layers(3)
    assert layer["layer"] == "y" and layer["seconds"] > 0
    cells = layers("steps", "--symbol", "steps=3")
    assert len(cells) == 3 and all(cell["seconds"] > 0 for cell in cells)


@pytest.mark.rocm
def test_a_model_that_launches_nothing_is_refused(cli, tmp_path):
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    from tests.frontend.models import make_model, single  # noqa: PLC0415  (needs onnx)

    model = tmp_path / "model.onnx"
    onnx.save(make_model([single("Identity", "x")], {"x": [2, 3]}, ["y"]), model)
    result = cli("emulate", model)
    assert result.exit_code == 4 and "no kernel was launched" in result.stderr
    assert "what to do: " in result.stderr
