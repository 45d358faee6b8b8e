import subprocess
import sys

import pytest

import refcomp


def test_every_public_name_resolves():
    for name in refcomp.__all__:
        assert getattr(refcomp, name) is not None


def test_functions_are_not_hidden_by_rooms_of_the_same_name():
    program = (
        "import refcomp.build, refcomp.lower.lower, refcomp\n"
        "assert callable(refcomp.build) and callable(refcomp.lower)\n"
        "assert refcomp.build.__name__ == 'build' and refcomp.lower.__name__ == 'lower'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'refcomp' has no attribute 'nonsense'"):
        refcomp.nonsense  # noqa: B018


def test_a_plain_import_loads_no_heavy_room():
    program = (
        "import sys, refcomp\n"
        "heavy = {'numpy', 'jinja2', 'onnx', 'click', 'rich', 'refcomp.build'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_public_names_are_listed():
    assert {"compute", "build", "sum", "create_schedule", "nd"} <= set(dir(refcomp))
