"""Layers of a network: the sum of their kernels, shared functions, and what is advised."""

from dataclasses import replace

import pytest

from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts
from refcomp.foundation.names import mangle
from refcomp.profile.advice import Advice
from refcomp.profile.layers import LayerCall, advice_on, layers_of, layers_table, useful_part
from refcomp.profile.report import report_of
from refcomp.profile.text import layers_to_text
from tests.emulator.snippets import instruction

_FMA, _ADD = "v_fma_f32 v0, v1, v2, v3", "v_add_f32 v0, v1, v2"


def _report(name, gpu="gfx942", launches=1, fmas=64, others=0):
    counts = KernelCounts(name, gpu, 64, 128, launches=launches, groups=4 * launches)
    for number, (text, waves) in enumerate([(_FMA, fmas * launches), (_ADD, others * launches)]):
        one = replace(instruction(text), number=number)
        counts.by_number[number] = InstructionCounts(one, waves, 64 * waves, None)
    return report_of(counts)


def test_layers_that_share_a_function_share_its_launches():
    reports = [
        _report("conv_kernel0", launches=2),
        _report("conv_kernel1", launches=2),
        _report("pool_kernel0"),
    ]
    calls = [
        LayerCall("a", "conv"),
        LayerCall("p", "pool"),
        LayerCall("b", "conv"),
        LayerCall("view", "reshape"),
    ]
    a, p, b = layers_of(calls, reports)
    assert (a.layer, p.layer, b.layer) == ("a", "p", "b")
    assert replace(a, layer="b") == b
    assert a.seconds == pytest.approx(2 * p.seconds)
    assert a.multiply_adds == 2 * p.multiply_adds == 2 * 64 * 64
    assert a.limit == "VALU"


def test_a_function_may_launch_a_kernel_several_times():
    (layer,) = layers_of([LayerCall("scan", "f")], [_report("f_kernel0", launches=3)])
    (single,) = layers_of([LayerCall("scan", "f")], [_report("f_kernel0")])
    assert layer.seconds == pytest.approx(3 * single.seconds)


@pytest.mark.parametrize("function", ["kernel0_größe", "f" * 119, "a_kernel0", "0"])
def test_kernels_are_found_by_the_symbols_of_machine_code(function):
    reports = [_report(mangle(f"{function}_kernel{number}"), fmas=2) for number in range(2)]
    calls = [LayerCall("x", function), LayerCall("other", "f")]
    (layer,) = layers = layers_of(calls, [*reports, _report("a_kernel0_kernel1_kernel0")])
    assert (layer.layer, layer.multiply_adds) == ("x", 2 * 2 * 64)
    assert layers_table(layers, reports).rows[0].kernel == 1


def test_useful_part_counts_what_multiplies_and_adds():
    assert useful_part([_report("f_kernel0", fmas=30, others=10)]) == 0.75
    assert useful_part([]) == 0.0


def test_table_keeps_the_order_of_layers_and_has_their_sum():
    reports = [_report("f_kernel0"), _report("g_kernel0", fmas=128)]
    layers = layers_of([LayerCall("x", "g"), LayerCall("y", "f")], reports)
    table = layers_table(layers, reports)
    assert [row.cells[0] for row in table.rows] == ["x", "y", "all"]
    assert [row.kernel for row in table.rows] == [2, 1, 0]
    assert table.rows[-1].cells[1] == 192 * 64
    assert "MI300X" in table.title and "none was measured" in table.title
    parts = [float(str(row.cells[4]).rstrip("%")) for row in table.rows]
    assert parts[0] + parts[1] == pytest.approx(parts[2])


def test_without_a_card_there_are_counts_only():
    reports = [_report("f_kernel0", gpu="gfx1200")]
    layers = layers_of([LayerCall("x", "f")], reports)
    assert layers[0].seconds is None and layers[0].limit is None
    assert layers_table(layers, reports).title == "layers"
    assert advice_on(layers) == []


def test_advice_is_on_the_longest_layers_and_once_for_a_function():
    reports = [_report(f"f{n}_kernel0", fmas=64 * (n + 1)) for n in range(4)]
    reports.append(_report("f4_kernel0", fmas=640, launches=2))
    calls = [LayerCall(f"layer{n}", f"f{n}") for n in range(5)] + [LayerCall("again", "f4")]
    layers = [
        replace(layer, advice=Advice(f"seen in {layer.layer}", "change it"))
        for layer in layers_of(calls, reports)
    ]
    found = advice_on(layers)
    assert [layer for layer, _ in found] == ["layer4", "layer3", "layer2"]
    assert found[0][1] == Advice("seen in layer4", "change it")
    lines = layers_to_text(layers, reports).splitlines()
    assert lines[-6:-4] == ["layer4: seen in layer4", "  what to do: change it"]


def test_a_layer_as_json_has_its_advice():
    (layer,) = layers_of([LayerCall("x", "f")], [_report("f_kernel0")])
    told = replace(layer, advice=Advice("much", "less")).to_json()
    assert told["layer"] == "x" and told["advice"]["remedy"] == "less"
