"""Code for another machine is read; its functions are not called."""

import pytest

from refcomp.foundation.artifacts import Signature, TensorParam
from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.runtime.device import cpu
from refcomp.runtime.inspected_module import InspectedFunction, inspected_module

SIGNATURE = Signature("scale", (TensorParam("X", F32, ("n",)),), ("n",))


def test_the_texts_of_a_module_are_read() -> None:
    module = inspected_module(
        [SIGNATURE],
        "riscv64-linux-gnu",
        target="llvm -mtriple=riscv64-linux-gnu",
        sources={"llvm": "text"},
        disassemble=lambda: "assembly",
    )
    assert (module.get_source("llvm"), module.get_source("asm")) == ("text", "assembly")
    assert module.contents is None
    with pytest.raises(UserError, match="scale cannot be called"):
        module.time_evaluator("scale", cpu())(1)


def test_code_for_another_machine_is_not_called() -> None:
    function = InspectedFunction(SIGNATURE, "riscv64-linux-gnu")
    assert repr(function).endswith("for riscv64-linux-gnu, to be read>")
    assert function.on(cpu()) is function
    message = (
        r"scale cannot be called: its code is for the machine riscv64-linux-gnu(.|\n)*"
        r'to be read and saved(.|\n)*"llvm" to call it here(.|\n)*module\.save\("x\.o"\)'
    )
    for call in (lambda: function(), lambda: function(X=1), lambda: function.bind(1, 2)):
        with pytest.raises(UserError, match=message):
            call()
