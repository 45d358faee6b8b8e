import pydoc
import subprocess
import sys
import types

import numpy as np
import pytest

import refcomp
from refcomp import oracle, te, topi

pytestmark = pytest.mark.tools


def test_every_public_name_resolves():
    for name in refcomp.__all__:
        assert getattr(refcomp, name) is not None


def test_functions_are_not_hidden_by_the_rooms_that_they_come_from():
    program = (
        "import refcomp.compiler, refcomp.lowering.lower, refcomp.certificates, refcomp\n"
        "functions = refcomp.build, refcomp.lower, refcomp.certify\n"
        "assert [f.__name__ for f in functions] == ['build', 'lower', 'certify']"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'refcomp' has no attribute 'nonsense'"):
        refcomp.nonsense  # noqa: B018


def test_a_plain_import_loads_no_heavy_room():
    program = (
        "import sys, refcomp\n"
        "rooms = {'numpy', 'jinja2', 'onnx', 'click', 'rich', 'refcomp.compiler'}\n"
        "heavy = rooms & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_public_names_are_listed():
    assert {"compute", "build", "sum", "create_schedule", "nd"} <= set(dir(refcomp))


ROOMS = [refcomp.te, refcomp.topi, refcomp.graph, refcomp.oracle, refcomp.frontend]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_rooms_list_public_names_that_resolve(room):
    assert dir(room) == sorted(room.__all__)
    assert len(set(room.__all__)) == len(room.__all__) > 0
    for name in room.__all__:
        assert callable(getattr(room, name)), name
        assert not isinstance(getattr(room, name), types.ModuleType), name
    with pytest.raises(AttributeError, match=f"module '{room.__name__}' has no attribute 'absent'"):
        room.absent  # noqa: B018


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_help_on_a_room_describes_its_public_names(room):
    page = pydoc.plain(pydoc.render_doc(room))
    for name in room.__all__:
        assert f"\n    {name}" in page or f"class {name}(" in page, name


def test_functions_keep_their_names_where_their_files_are_named_alike():
    program = (
        "import refcomp.topi.convolution.conv2d, refcomp.te.scans, refcomp.graph.optimize\n"
        "import refcomp.oracle.tensors.evaluate\n"
        "from refcomp import graph, oracle, te, topi\n"
        "for function in (topi.conv2d, te.scan, oracle.evaluate, graph.optimize):\n"
        "    assert type(function).__name__ == 'function', function\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_te_has_every_function_that_the_package_takes_from_it():
    taken = {name for name, home in refcomp._HOME.items() if home.startswith("refcomp.te.")}
    assert taken | {"convert", "pow"} <= set(refcomp.te.__all__)
    assert all(getattr(refcomp.te, name) is getattr(refcomp, name) for name in taken)
    assert refcomp.te.create_schedule is refcomp.create_schedule


def test_topi_has_every_operator_of_graphs():
    for name in refcomp.graph.operator_names():
        compute = refcomp.graph.find_operator(name).compute
        if compute.__module__.startswith("refcomp.topi."):
            assert getattr(refcomp.topi, compute.__name__) is compute


def test_a_program_in_terms_of_rooms():
    n = te.var("n")
    a = te.placeholder((n, 4), "float32", name="A")
    k = te.reduce_axis((0, 4), name="k")
    total = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="T")
    te.create_schedule([topi.relu(total).op])
    rows = np.arange(8, dtype="float32").reshape(2, 4)
    (sums,) = oracle.evaluate([topi.relu(total)], {a: rows})
    assert oracle.compare(sums, rows.sum(1)).agrees


def test_looking_at_a_graph_imports_no_compiler():
    program = (
        "import sys; from refcomp.graph import Graph; assert 'refcomp.compiler' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
