import numpy as np

from refcomp.emulator.ptx.instructions.rule import ValueRule


def test_rule_says_types_and_computes() -> None:
    rule = ValueRule(np.add, ("u32", "u32"), ("u32",))
    assert rule.compute(np.uint32(1), np.uint32(2)) == 3
    assert rule.undefined is None
