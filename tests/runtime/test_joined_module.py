import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.runtime.joined_module import joined


def lowered(name, number=1.0):
    A = rc.placeholder((2,), name="A")
    B = rc.compute((2,), lambda i: A[i] + number, name="B")
    return rc.lower(rc.create_schedule(B), [A, B], name)


def built(name, number):
    return rc.build(lowered(name, number), target="interp")


def test_functions_run_and_texts_are_joined():
    module = joined([built("f", 1.0), built("g", 2.0)])
    assert (list(module.signatures), module.entry_name) == (["f", "g"], "f")
    module["g"](np.zeros(2, "f4"), b := np.zeros(2, "f4"))
    assert b.tolist() == [2, 2]
    text = module.get_source("loop_ir")
    assert "func f(" in text and "func g(" in text
    assert module.target == "interp"


def test_two_functions_of_one_name_are_refused():
    with pytest.raises(UserError, match="two functions of a module are called f"):
        joined([built("f", 1.0), built("f", 2.0)])


def test_it_cannot_be_saved(tmp_path):
    module = joined([built("f", 1.0), built("g", 2.0)])
    with pytest.raises(Unsupported, match=r"for the targets interp cannot(.|\n)*for each of them"):
        module.save(tmp_path / "m")
    assert module.contents is None


@pytest.mark.llvm
def test_a_text_that_one_part_has_is_saved(tmp_path):
    llvm, other = (
        rc.build(lowered(name), target=target)
        for name, target in (("f", "llvm"), ("h", "llvm -mcpu=generic"))
    )
    module = joined([llvm, built("g", 2.0)])
    module.save(tmp_path / "m.ll")
    assert (tmp_path / "m.ll").read_text() == llvm.get_source("llvm")
    with pytest.raises(Unsupported) as caught:
        module.save(tmp_path / "m.cl")
    assert (
        str(caught.value)
        .splitlines()[-1]
        .endswith("its parts have llvm: loop_ir, llvm; interp: loop_ir")
    )
    with pytest.raises(Unsupported, match="several parts have one(.|\n)*llvm, llvm -mcpu=generic"):
        joined([llvm, other]).save(tmp_path / "m.ll")
