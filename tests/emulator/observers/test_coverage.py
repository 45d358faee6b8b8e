"""What runs have shown of instructions: lanes off, operands at borders, modifiers."""

import numpy as np
import pytest

from refcomp.emulator.generations.generation import GFX942
from refcomp.emulator.observers.coverage import (
    Coverage,
    Seen,
    depends_on_lanes,
    edges_in,
    edges_wanted,
)
from refcomp.ir.parser import parse_func
from tests.emulator.kernels import Kernels
from tests.emulator.snippets import LANE, instruction, make_waves, put, set_mask


def _seen(line, values, mask=None):
    coverage, waves = Coverage(), make_waves()
    put(waves, 1, values)
    put(waves, 2, values)
    if mask is not None:
        set_mask(waves, mask)
    one = instruction(line)
    coverage.instruction(waves, one)
    return coverage.seen[one.mnemonic]


def test_lanes_that_are_off_are_seen():
    values = np.ones(64, np.float32)
    assert not _seen("v_add_f32_e32 v0, v1, v2", values).is_partial
    assert _seen("v_add_f32_e32 v0, v1, v2", values, LANE < 9).is_partial
    assert not _seen("v_add_f32_e32 v0, v1, v2", values, LANE < 0).is_partial
    assert not depends_on_lanes("s_add_u32") and not depends_on_lanes("v_readlane_b32")


def test_borders_are_seen_in_lanes_that_run():
    values = np.where(LANE < 2, np.float32(np.inf), np.float32(-0.0))
    assert _seen("v_add_f32_e32 v0, v1, v2", values).edges == {"inf", "-0"}
    assert _seen("v_add_f32_e32 v0, v1, v2", values, LANE > 1).edges == {"-0"}
    assert _seen("v_add_f32_e64 v0, -v1, 1.0 clamp", values).modifiers == {"neg", "clamp"}


@pytest.mark.parametrize(
    ("kind", "values", "names"),
    [
        ("f16", np.array([np.nan, 1e-7, 1], np.float16), "nan denormal"),
        ("f64", np.array([1e-320, -np.inf, 0.0]), "inf denormal"),
        ("i32", np.array([-(2**31), 5], np.int32), "least"),
        ("u16", np.array([65535, 7], np.uint16), "greatest"),
    ],
)
def test_borders_of_types(kind, values, names):
    assert edges_in(values, kind) == set(names.split())


def test_what_is_wanted_follows_from_the_types():
    assert edges_wanted("v_add_f32", GFX942) == {"inf", "nan", "denormal", "-0"}
    assert edges_wanted("v_pk_add_u16", GFX942) == {"least", "greatest"}
    assert len(edges_wanted("v_ldexp_f32", GFX942)) == 6
    assert not edges_wanted("global_load_dword", GFX942) and not edges_wanted("s_branch", GFX942)


def test_runs_add_up():
    total = Coverage()
    total.add({"v_a": Seen(True, {"inf"}, set())})
    total.add({"v_a": Seen(False, {"nan"}, {"clamp"}), "v_b": Seen()})
    assert total.seen["v_a"] == Seen(True, {"inf", "nan"}, {"clamp"})


_TEXT = """
func f(A: f32[64], B: f32[64] out) {
  for t in range(64) threadIdx.x { GUARD { B@[t] = A@[t] + 1.0f32 } }
}
"""


@pytest.mark.rocm
@pytest.mark.parametrize(("guard", "is_partial"), [("", False), ("if (t % 2 == 0)", True)])
def test_kernels_are_covered(guard, is_partial):
    text = _TEXT.replace("GUARD {", f"{guard} {{" if guard else "").replace(
        "} }\n}", "} }\n}" if guard else "}\n}"
    )
    kernel = parse_func(text)
    kernels = Kernels([kernel])
    arrays = [np.ones(64, np.float32), np.zeros(64, np.float32)]
    kernels.run(kernel, arrays, (1, 1, 1), (64, 1, 1))
    seen = kernels.coverage.seen
    assert seen["v_add_f32"].is_partial == seen["global_store_dword"].is_partial == is_partial
