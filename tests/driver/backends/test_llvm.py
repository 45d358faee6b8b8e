"""The host's back end: text, shared object, assembly."""

import re
from dataclasses import replace
from threading import enumerate as enumerate_threads

import numpy as np
import pytest

from refcomp.building import build
from refcomp.codegen.signature import signature_of
from refcomp.compiler import build_functions
from refcomp.driver.backend import Loading
from refcomp.driver.backends import as_target, division
from refcomp.driver.backends.llvm import LLVM, compile_host, print_host
from refcomp.driver.compile import compile_functions
from refcomp.driver.pipeline import run_pipeline
from refcomp.foundation.errors import ToolchainError, Unsupported, UserError
from refcomp.foundation.machine import machine
from refcomp.foundation.triples import ARCHITECTURES
from refcomp.graph import GraphBuilder, GraphExecutor, compile_graph
from refcomp.ir.integer_pairs import pair_product
from refcomp.ir.parser import parse_func
from refcomp.lowering.lower import lower
from refcomp.schedule.schedule import create_schedule
from refcomp.te.maths import exp, sin
from refcomp.te.operation import compute, placeholder
from refcomp.te.tensor import var
from refcomp.toolchain import host_triple_and_layout
from refcomp.toolchain.parts import PartsBuild

pytestmark = pytest.mark.llvm
FUNC = parse_func("func f(A: f32[n] out) { for i in range(n) { A[i] = 3.0f32 } }")


def test_functions_are_compiled_and_loaded():
    compiled = compile_functions([FUNC], "llvm")
    module = LLVM.load(compiled, Loading((signature_of(FUNC),), {"loop_ir": "its text"}, ()))
    found = np.zeros(5, np.float32)
    module(found)
    assert found.tolist() == [3.0] * 5
    assert module.get_source("loop_ir") == "its text"
    assert module.get_source("llvm").startswith("; func f") or "define" in module.get_source("llvm")


def test_the_text_is_what_is_compiled():
    made = [run_pipeline(FUNC, "llvm")]
    target = as_target("llvm")
    text = print_host(made, target).text
    assert compile_host(made, target, None).sources == {"llvm": text}
    shown = LLVM.texts(made, target)
    assert shown["llvm"]() == text and ".globl\tf" in shown["asm"]()


def test_pairs_have_the_instruction_of_the_processor():
    if not host_triple_and_layout()[0].startswith("x86_64"):
        pytest.skip("an instruction of x86")
    factors = placeholder((8,), "int32"), placeholder((8,), "int32")
    sums = compute((8,), lambda i: pair_product(*(factor[i] for factor in factors)))
    schedule = create_schedule(sums)
    schedule[sums].vectorize(sums.op.axis[0])
    made = [run_pipeline(lower(schedule, [*factors, sums], "pairs"), "llvm")]
    for mcpu, is_called in (("x86-64-v3", True), ("x86-64-v2", False)):
        text = print_host(made, as_target(f"llvm -mcpu={mcpu}")).text
        assert ("call <8 x i32> @llvm.x86.avx2.pmadd.wd" in text) == is_called


# ---- large modules are compiled in parts ------------------------------------------------------


def _filling(name, value, text="A[i] = {}"):
    body = text.format(value)
    return parse_func(f"func {name}(A: f32[n] out) {{ for i in range(n) {{ {body} }} }}")


FUNCS = [_filling(f"f{k}", f"{k}.0f32") for k in range(7)]


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The names of the functions of each part that was started; a part has about two functions."""
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))  # nothing is built yet
    monkeypatch.setattr(division, "PART_NODES", 12)
    texts = []
    start = PartsBuild.start

    def noted(self, source):
        texts.append(re.findall(r"^define i32 @(\w+)", source.text, re.MULTILINE))
        start(self, source)

    monkeypatch.setattr(PartsBuild, "start", noted)
    return texts


def test_a_large_module_is_compiled_in_parts_and_is_the_same(started, monkeypatch, tmp_path):
    parted = build_functions(FUNCS)
    assert len(started) > 2
    assert [name for part in started for name in part] == [func.name for func in FUNCS]
    monkeypatch.setattr(division, "PART_NODES", 10**9)
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "other"))
    parts = len(started)
    whole = build_functions(FUNCS)
    assert len(started) == parts
    for language in ("loop_ir", "llvm"):
        assert parted.get_source(language) == whole.get_source(language)
    for k in range(7):
        for module in (parted, whole):
            found = np.zeros(5, np.float32)
            module[f"f{k}"](found)
            assert found.tolist() == [k] * 5
    for name in (func.name for func in FUNCS):
        assert f"<{name}>:" in parted.get_source("asm")


def test_the_bounds_of_parts_depend_on_the_functions_alone(started, monkeypatch):
    compile_functions(FUNCS, "llvm")
    first = list(started)
    monkeypatch.setattr(division, "usable_cores", lambda: 1)
    compile_functions(FUNCS, "llvm")
    assert started == [*first, *first]


def test_parts_start_while_later_functions_are_not_there_yet(started):
    def made():
        yield from FUNCS[:6]
        assert started, "no part was started before the last function was made"
        yield FUNCS[6]

    compile_functions(made(), "llvm")


def test_an_error_while_later_functions_are_made_leaves_no_part(started):
    def made():
        yield from FUNCS[:6]
        raise RuntimeError("of the generator")

    with pytest.raises(RuntimeError, match="of the generator"):
        compile_functions(made(), "llvm")
    assert started and not [t for t in enumerate_threads() if t.name.startswith("refcomp-part")]


def test_a_failure_names_the_line_of_its_part(started, monkeypatch):
    """The text of one function is damaged behind the printer."""
    start = PartsBuild.start

    def damaged(self, source):
        start(self, replace(source, text=source.text.replace("float 0x4014", "flaot 0x4014")))

    monkeypatch.setattr(PartsBuild, "start", damaged)
    with pytest.raises(ToolchainError, match="opt.* failed") as caught:
        build_functions(FUNCS)
    assert caught.value.where == "A@[i] = 5.0f32"
    assert len(started) > 2


def test_functions_that_share_more_than_a_name_are_one_part(started):
    """Imported LLVM IR and the callback exist once, so all behind the first call are together."""
    caller = _filling("caller", "extern f32 twice(2.0f32)")
    text = "define float @twice(float %x) { %y = fadd float %x, %x ret float %y }"
    text = text.replace("{ ", "{\n  ").replace("%x ret", "%x\n  ret").replace(" }", "\n}")
    importer = replace(_filling("importer", "3.0f32"), imports=(text,))
    module = build_functions([*FUNCS[:3], caller, *FUNCS[3:], importer])
    together = ["f2", "caller", "f3", "f4", "f5", "f6", "importer"]
    assert started == [["f0", "f1"], together]
    found = np.zeros(2, np.float32)
    module["caller"](found)
    assert found.tolist() == [4.0, 4.0]


# Other machines than that of this test.
TRIPLES = [
    known.example
    for known in ARCHITECTURES
    if known.name in ("aarch64", "arm", "riscv64")
    if known.name != machine()
]


def _exponentials():
    size = var("n")
    data = placeholder((size,), name="A")
    result = compute((size,), lambda i: exp(data[i]) + 1.0, name="B")
    schedule = create_schedule(result)
    schedule[result].vectorize(schedule[result].split(result.op.axis[0], 8)[1])
    return schedule, [data, result]


@pytest.mark.parametrize("triple", TRIPLES)
def test_code_for_another_machine_is_read_and_saved(triple, tmp_path):
    module = build(*_exponentials(), f"llvm -mtriple={triple}", name="inc")
    assert f'target triple = "{triple}"' in module.get_source("llvm")
    assert "func inc" in module.get_source("loop_ir")
    assert ".globl\tinc" in module.get_source("asm")
    for suffix in ("ll", "s", "o", "bc"):
        module.save(tmp_path / f"inc.{suffix}")
    assert (tmp_path / "inc.ll").read_text() == module.get_source("llvm")
    assert ".globl\tinc" in (tmp_path / "inc.s").read_text()
    # The machine in the header of an ELF file: of its bytes 18 and 19.
    numbers = {"aarch64": 183, "armv7": 40, "riscv64": 243}
    header = (tmp_path / "inc.o").read_bytes()[:20]
    assert int.from_bytes(header[18:], "little") == numbers[triple.partition("-")[0]]
    with pytest.raises(UserError, match=f"inc cannot be called(.|\n)*{triple}"):
        module(np.zeros(3, "f4"), np.zeros(3, "f4"))
    for path in ("inc.so", "inc.refcomp", "inc"):
        with pytest.raises(Unsupported, match=r"is not saved as a file to(.|\n)*cc main\.c x\.o"):
            module.save(tmp_path / path)
    assert module.contents is None


@pytest.mark.parametrize(
    "triple, addition",
    [
        ("aarch64-linux-gnu", r"add\tv\d+\.4s"),
        ("armv7-linux-gnueabihf -mattr=+neon", r"vadd\.i32\tq\d+"),
        ("riscv64-linux-gnu -mattr=+d,+v", r"vadd\.vv\tv\d+"),
    ],
)
def test_the_registers_of_another_machine_hold_its_vectors(triple, addition):
    if machine() in triple:
        pytest.skip("this machine")
    data = placeholder((64,), "int32", name="A")
    result = compute((64,), lambda i: data[i] + data[63 - i], name="B")
    schedule = create_schedule(result)
    schedule[result].vectorize(schedule[result].split(result.op.axis[0], 4)[1])
    text = build(schedule, [data, result], f"llvm -mtriple={triple}").get_source("asm")
    assert re.search(rf"\t{addition}", text)


def test_sizes_of_memory_have_the_width_of_addresses():
    size = var("n")
    data = placeholder((size,), name="A")
    middle = compute((size,), lambda i: data[i] + 1.0, name="M")
    result = compute((size,), lambda i: middle[size - 1 - i], name="B")
    args = create_schedule(result), [data, result]
    short, wide = (
        build(*args, f"llvm -mtriple={triple}").get_source("llvm")
        for triple in ("armv7-linux-gnueabihf", "riscv64-linux-gnu")
    )
    assert "declare noalias ptr @aligned_alloc(i32, i32)" in short
    assert "call ptr @aligned_alloc(i32 64, i32 %M.bytes)" in short
    assert re.search(r"%M.most = call i64 @llvm.umin.i64\(i64 %[.\d]+, i64 4294963200\)", short)
    assert "call ptr @aligned_alloc(i64 64, i64 %" in wide


def test_parallel_loops_need_a_known_way_to_wait():
    data = placeholder((64,), name="A")
    result = compute((64,), lambda i: data[i] * 2.0, name="B")
    schedule = create_schedule(result)
    schedule[result].parallel(result.op.axis[0])
    module = build(schedule, [data, result], "llvm -mtriple=aarch64-linux-gnu")
    assert "refcomp.threads.run" in module.get_source("llvm")
    with pytest.raises(Unsupported, match="for the architecture armv7(.|\n)*remove parallel"):
        build(schedule, [data, result], "llvm -mtriple=armv7-linux-gnueabihf")


def test_vectors_of_mathematics_are_those_of_glibc():
    data = placeholder((64,), name="A")
    result = compute((64,), lambda i: sin(data[i]), name="B")
    schedule = create_schedule(result)
    schedule[result].vectorize(schedule[result].split(result.op.axis[0], 4)[1])
    for triple, is_vector in (("x86_64-linux-gnu", True), ("x86_64-linux-musl", False)):
        text = build(schedule, [data, result], f"llvm -mtriple={triple}").get_source("llvm")
        assert ("_ZGV" in text) == is_vector
        assert ("@sinf(" in text) == (not is_vector)


def test_a_network_is_compiled_for_another_machine():
    builder = GraphBuilder("net")
    data = builder.input("x", "float32", (1, 8))
    weights = builder.constant("w", np.ones((4, 8), "float32"))
    graph = builder.finish([builder.node("dense", [data, weights])])
    compiled = compile_graph(graph, f"llvm -mtriple={TRIPLES[0]}")
    assert f'target triple = "{TRIPLES[0]}"' in compiled.module.get_source("llvm")
    with pytest.raises(UserError, match="cannot be called(.|\n)*to be read and saved"):
        GraphExecutor(compiled).run(x=np.ones((1, 8), "float32"))
