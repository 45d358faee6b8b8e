"""Every walkthrough runs to its end; that of the matmul shows its stages in the tour's order."""

import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.walkthroughs import walkthrough

ROOT = Path(__file__).parents[2]
WALKTHROUGHS = sorted((ROOT / "scripts" / "walkthroughs").glob("*.py"))


@cache
def printed(name: str) -> str:
    """What a walkthrough prints, without arguments and in an empty folder, where it leaves nothing.

    Each runs once, whichever test asks first.
    """
    script = ROOT / "scripts" / "walkthroughs" / f"{name}.py"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(script)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
        assert os.listdir(folder) == []
    return done.stdout


@pytest.mark.llvm
@pytest.mark.pocl
@pytest.mark.parametrize("script", WALKTHROUGHS, ids=lambda path: path.stem)
def test_a_walkthrough_runs_to_its_end(script: Path) -> None:
    assert printed(script.stem)


@pytest.fixture(scope="module")
def matmul() -> dict[str, str]:
    """The stages that the walkthrough of the matmul prints: the text under each title."""
    text = printed("matmul")
    titles = re.split(r"(?m)^== (.*)\n", text)
    return dict(zip(titles[1::2], titles[2::2], strict=True))


@pytest.mark.llvm
def test_the_matmul_passes_the_stages_in_the_order_of_the_tour(matmul: dict[str, str]) -> None:
    tour = (ROOT / "refcomp" / "__init__.py").read_text(encoding="utf-8")
    told = re.findall(r"(?m)^(\d+)\. (\w+)", tour)
    walked = [re.match(r"(\d+)\. (\w+).* \(refcomp/(.*)\)$", title) for title in matmul]
    numbers = [found[1] for found in walked if found]
    assert list(dict.fromkeys(numbers)) == [number for number, _ in told]
    assert len(numbers) == len(matmul)
    for found in walked:
        assert found is not None
        assert (ROOT / "refcomp" / found[3]).is_file()
        assert found[1] == "6" or (found[1], found[2]) in told


@pytest.mark.llvm
def test_the_matmul_shows_what_each_stage_is_about(matmul: dict[str, str]) -> None:
    text = {title.split(":")[0]: body for title, body in matmul.items()}
    assert "s[C].split(i, factor=2)" in text["2. schedule"]
    assert "for i.outer in range(4) parallel {" in text["3. lowering"]
    assert text["4. ir"].strip() == "True"
    assert text["5. arith"].strip() == "proved rows * 2 + row < 8: True"
    assert "C@[ramp(" in text["6. vectorize_loops"]
    assert text["7. codegen"].count("fmul <") >= 2
    assert len(re.findall(r"mul|mla|madd", text["8. toolchain"])) >= 2
    assert "LLVM IR" in text["10. driver"]
    assert text["9. runtime"].strip() == "{'numpy': True, 'the interpreter': True}"


@pytest.mark.llvm
def test_the_gemm_tells_the_rate_of_each_step_and_draws_them(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "walkthroughs" / "optimize_gemm.py"
    command = [sys.executable, str(script), "40x70x33", "chart.png"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        *("peak", "numpy", "naive", "blocked", "vectorized", "permuted", "packed", "cached"),
        *("unrolled", "parallel"),
    ]
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.llvm
@pytest.mark.pocl
@pytest.mark.rocm
def test_vector_add_runs_on_what_is_there_and_shows_every_code() -> None:
    text = printed("vector_add")
    host, opencl, rocm = re.split(r"(?m)^===== \w+ =====$", text)[1:]
    assert host.count("sums on cpu:0 agree with numpy") == 2
    assert "define i32 @myadd(" in host
    assert opencl.count("sums on opencl:0 agree with numpy") == 2
    assert "launch myadd_kernel0 (" in opencl
    assert "__kernel" in opencl
    assert "define amdgpu_kernel void @myadd_kernel0(" in rocm
    assert (
        "compiled for rocm, but not run: this machine has no device rocm:0" in rocm
        or "agree" in rocm
    )


@pytest.mark.llvm
def test_training_reaches_the_accuracy_with_both_optimizers() -> None:
    text = printed("train_from_scratch")
    accuracies = re.findall(r"(Sgd|Adam): 315 steps in .*, accuracy ([0-9.]+)%", text)
    assert [name for name, _ in accuracies] == ["Sgd", "Adam"]
    assert min(float(percent) for _, percent in accuracies) >= 97
    assert "weight1_grad: f32[16, 1, 3, 3] = conv2d_backward_weight(conv1_grad, image)" in text


def test_losses_of_training_are_drawn_if_matplotlib_is_there(tmp_path: Path, capsys) -> None:
    path = tmp_path / "losses.png"
    walkthrough("train_from_scratch")["save_chart"](str(path), {"Sgd": [2.0, 1.0]})
    is_drawn = find_spec("matplotlib") is not None
    assert path.exists() == is_drawn
    assert ('pip install "refcomp[pictures]"' in capsys.readouterr().out) != is_drawn


@pytest.mark.pocl
def test_the_tiled_product_waits_twice_a_tile_and_equals_numpy() -> None:
    text = printed("tiled_gemm_opencl")
    assert text.count("barrier(") == 2
    assert text.count("__local float ") == 2
    assert "equals numpy: True" in text


@pytest.mark.rocm
def test_the_product_for_amd_gpus_tells_what_it_takes() -> None:
    text = printed("tiled_gemm_rocm")
    assert text.startswith("rocm -mcpu=gfx942: ")
    assert "   256 v_pk_fma_f32\n" in text and "    32 ds_read_b128\n" in text


@pytest.mark.rocm
def test_the_tuned_product_says_what_its_loop_does_and_draws_it(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "walkthroughs" / "tuned_gemm_rocm.py"
    command = [sys.executable, str(script), "gfx942", "chart.png"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"\n  1024  9[5-9]\.\d%  multiply and add   v_pk_fma_f32\n", done.stdout)
    shares = re.search(r"Their share was ([\d.]+) %, it is ([\d.]+) % now\.", done.stdout)
    assert shares and 90 < float(shares[1]) < 95 < float(shares[2])
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.rocm
def test_matrix_cores_name_the_instruction_of_each_kernel() -> None:
    text = printed("matrix_cores")
    rows = re.findall(r"(?m)^gfx\w+ \w+ +(\d+) of +(\d+) vector instructions: v_(\w+)$", text)
    assert len(rows) == 7
    assert all(0 < int(count) < int(whole) for count, whole, _ in rows)
    assert all(name.startswith(("mfma", "wmma")) for _, _, name in rows)
    tuned = printed("tuned_matrix_cores")
    share = re.search(r"See that ([\d.]+) % multiply", tuned)
    assert share and float(share[1]) > 95
    assert "equals numpy: True" in tuned


@pytest.mark.rocm
def test_the_digits_are_classified_on_an_emulated_gpu() -> None:
    text = printed("digits_on_amd_gpu")
    assert re.match(r"7 launches on rocm\S*:0: [\d.]+ s for 64 images\n", text)
    assert "63 of 64 are right; largest difference from numpy" in text


@pytest.mark.rocm
def test_the_profile_of_the_product_tells_what_tiles_are_good_for() -> None:
    text = printed("profile_gemm")
    naive, tiled = text.split("== tiled ==")
    assert text.count("16777216 (N * N * N is 16777216)") == 2
    assert "the limit is L1" in naive and "the limit is VALU" in tiled
    assert "let the threads of a group share what they read: tiles in shared memory" in naive
    assert "139264, 0 of them for bank conflicts" in tiled
    part = re.search(r"takes (\d+)% of the naive one's time", tiled)
    assert part and int(part[1]) < 20


@pytest.mark.rocm
@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("optimize_gemm.py 12by12", "'12by12' is not a size: give one number, or three"),
        ("vector_add.py nowhere", "vector_add.py: unknown target 'nowhere'"),
        ("tiled_gemm_rocm.py nowhere", "tiled_gemm_rocm.py: unknown target 'nowhere'"),
        ("tuned_gemm_rocm.py gfx1", "tuned_gemm_rocm.py: mcpu 'gfx1' is unknown"),
        ("tuned_matrix_cores.py gfx1", "argument gpu: invalid choice: 'gfx1'"),
        ("tuned_matrix_cores.py gfx942 int3", "argument dtype: invalid choice: 'int3'"),
    ],
)
def test_wrong_arguments_are_told_of(call: str, told: str, tmp_path: Path) -> None:
    name, *arguments = call.split()
    command = [sys.executable, str(ROOT / "scripts" / "walkthroughs" / name), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode in (1, 2) and told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.llvm
def test_photographs_are_classified_and_drawn(tmp_path: Path) -> None:
    text = printed("classify_photographs")
    likeliest = re.findall(r"(?m)^(coffee|camera|motorcycle|china) +(\w+) \d+%, ", text)
    assert dict(likeliest) == {
        "coffee": "espresso",
        "camera": "tripod",
        "motorcycle": "moped",
        "china": "palace",
    }
    save = walkthrough("classify_photographs")["save_picture"]
    picture = np.zeros((4, 4, 3), np.uint8)
    save(str(tmp_path / "a.png"), [picture] * 2, [[("cup", 0.7), ("mug", 0.2)]] * 2)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.llvm
def test_the_enlarged_picture_is_closer_to_the_truth_than_interpolation(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "walkthroughs" / "enlarge_picture.py"
    command = [sys.executable, str(script), "sheet.png"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n37 convolutions in " in done.stdout
    scores = dict(re.findall(r"(?m)^(\w+): PSNR ([0-9.]+) dB$", done.stdout))
    assert float(scores["network"]) > float(scores["bicubic"]) + 0.3
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (1024, 256)
