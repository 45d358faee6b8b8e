"""The committed table is what its generator reads off AMD's headers."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

from refcomp.hip.numbers import NUMBERS, VERSIONS

ROOT = Path(__file__).parents[2]
INCLUDE = Path("/usr/include")


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("hip_numbers", ROOT / "scripts/hip_numbers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.clang
def test_the_column_of_the_installed_header(generator):
    if not (INCLUDE / generator.HEADER).exists():
        pytest.skip(f"no {generator.HEADER}: apt-get install libamdhip64-dev")
    read = generator.read(INCLUDE)
    version = read.pop("version")
    column = max(i for i, known in enumerate(VERSIONS) if known // 10**7 <= version // 10**7)
    kept = {n: values[column] for n, values in NUMBERS.items() if values[column] is not None}
    if version == VERSIONS[column]:
        assert read == kept
    both = {*read} & {*kept}  # another one of the same major may have more, or fewer
    assert {n: read[n] for n in both} == {n: kept[n] for n in both}
    assert len(both) > 90


def test_a_wheel_of_hip_python_is_read_too(generator, tmp_path):
    """One that is made here, and pretends: the real ones have 60 MB."""
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip/__init__.py").write_text("")
    (tmp_path / "hip/hip.py").write_text(
        "import ctypes, enum\n"
        "HIP_VERSION = 80000001\n"
        "hipError_t = enum.IntEnum('E', {'hipSuccess': 0, 'hipErrorTbd': 1054, 'hipTry': 7})\n"
        "hipDeviceAttribute_t = enum.IntEnum('A', {'hipDeviceAttributeWarpSize': 88})\n"
        "hipMemcpyKind = enum.IntEnum('K', {'hipMemcpyDefault': 4, 'hipMemcpyNoCU': 99})\n"
        "class hipDeviceProp_t:\n"
        "    def __init__(self): self.raw = (ctypes.c_char * 64)()\n"
        "    def c_sizeof(self): return 64\n"
        "    def as_c_void_p(self): return ctypes.c_void_p(ctypes.addressof(self.raw))\n"
        "    gcnArchName = property(lambda self: self.raw[40:60])\n"
    )
    assert generator.read(tmp_path) == {
        **{"hipSuccess": 0, "hipErrorTbd": 1054, "hipDeviceAttributeWarpSize": 88},
        **{"hipMemcpyDefault": 4, "hipDeviceProp_t.gcnArchName": 40, "version": 80000001},
    }


def test_the_table_is_python(generator):
    text = generator.table([{"version": 5, "a": 1}, {"version": 60_000_000, "b": 2}])
    versions, numbers = (ast.literal_eval(node.value) for node in ast.parse(text).body[1:])
    assert versions == (5, 60_000_000)
    assert numbers == {"a": (1, None), "b": (None, 2)}
    columns = [
        {"version": version, **{n: v[i] for n, v in NUMBERS.items() if v[i] is not None}}
        for i, version in enumerate(VERSIONS)
    ]
    assert generator.table(columns) == (ROOT / "refcomp/hip/numbers.py").read_text()
    assert sys.modules.get("hip_numbers") is None
