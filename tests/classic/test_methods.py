"""Classic attributes of refcomp's classes are those of other names, or say what to write."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic.methods import CLASSES, ClassicAttribute, add_classic_attributes
from refcomp.classic.table import read_areas, resolve


def func() -> rc.ir.func.PrimFunc:
    A = rc.placeholder((4,), name="A")
    B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
    return rc.lower(rc.create_schedule(B), [A, B], name="add_one")


def module() -> rc.runtime.Module:
    return rc.build(func(), target="interp")


def test_attributes_of_another_name_return_the_same() -> None:
    assert rc.cpu().device_id == rc.cpu().index == 0
    assert rc.as_target("llvm -mcpu=x86-64").target_name == "llvm"
    f = module()
    b = np.zeros(4, "float32")
    f.entry_func(np.ones(4, "float32"), b)
    assert list(b) == [2, 2, 2, 2]
    f.get_function("add_one")(np.zeros(4, "float32"), b)
    assert list(b) == [1, 1, 1, 1]


def test_a_new_scope_of_a_builder_ends_what_is_declared_in_it() -> None:
    ib = rc.classic.ir_builder.create()
    memory = ib.buffer_ptr(rc.decl_buffer((8,), "int32", name="B"))
    for half in range(2):
        with ib.new_scope():
            thread = rc.classic.thread_axis("threadIdx.x")
            ib.scope_attr(thread, "thread_extent", 4)
            memory[half * 4 + thread] = half
    first, second = ib.get().stmts
    assert (first.kind, second.kind) == ("threadIdx.x", "threadIdx.x")


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (rc.cpu, "device_type", "'Device' object has no attribute 'device_type': write `device."),
        (lambda: rc.var("n"), "same_as", "'Var' object has no attribute 'same_as': write `a is b`"),
        (lambda: rc.as_target("cuda"), "mcpu", 'write `target.option("mcpu", "")`.'),
        (lambda: rc.nd.empty((2,)), "to_dlpack", "write `torch.from_dlpack(array)`"),
        (module, "import_module", "modules hold their kernels from the start."),
        (module, "type_key", "write `str(module)`"),
        (lambda: rc.decl_buffer((4,)), "READ", 'write `access_ptr("r")`.'),
        (func, "func_type", "a function is split into its host's part"),
        (lambda: func().body, "for_type", "write `loop.kind`"),
    ],
)
def test_absent_attributes_say_what_to_write(make, name: str, message: str) -> None:
    owner = make()
    assert not hasattr(owner, name)
    assert not hasattr(type(owner), name)
    with pytest.raises(AttributeError) as info:
        getattr(owner, name)
    assert message in str(info.value)
    assert info.value.name == name


def test_the_kernels_of_a_device_say_it_too() -> None:
    kernels = resolve("runtime.programs.device_module.DeviceModule")
    with pytest.raises(AttributeError, match="write `str.module.`"):
        kernels.type_key  # noqa: B018


def test_every_owner_of_an_absent_attribute_has_its_class() -> None:
    methods = [entry for area in read_areas() for entry in area.names if entry.is_method]
    changed = {e.name.partition(".")[0] for e in methods if e.target != e.name}
    decorated = {"GraphModule", "Graph"}  # in executors.py and networks.py
    assert changed == CLASSES.keys() | decorated


def test_attributes_of_refcomp_are_never_replaced() -> None:
    before = dict(vars(rc.runtime.Device))
    add_classic_attributes()
    assert dict(vars(rc.runtime.Device)) == before
    assert not isinstance(vars(rc.runtime.Device)["index"], ClassicAttribute)
