"""Intel's OpenCL runtime for processors: where it is, and how a child process uses it alone.

It comes as wheels: `pip install 'refcomp[intel]'`. It shares no code with PoCL and Oclgrind beyond
LLVM, so it judges our OpenCL C a third time. It runs in children only: its libraries would stay in
the process, and what it crashes on would end the tests.
"""

import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

# Intel's vectorizer is known to crash on some random programs. The judge does without it.
NO_VECTORIZER = {"CL_CONFIG_CPU_VECTORIZER_MODE": "1"}
# A runtime that lies elsewhere, such as that of a oneAPI installation.
_VARIABLE = "REFCOMP_TEST_INTEL_OPENCL"
_NAME = "libintelocl.so"


def library() -> Path | None:
    """The runtime's library: the one that the variable names, or that of the wheel."""
    if named := os.environ.get(_VARIABLE):
        return Path(named).absolute()
    try:
        files = distribution("intel-opencl-rt").files or []
    except PackageNotFoundError:
        return None
    return next((Path(f.locate()).resolve() for f in files if f.name == _NAME), None)


def alone(folder: Path) -> dict[str, str]:
    """The variables with which a process sees this runtime and no other; written to `folder`."""
    found = library()
    assert found is not None, "the mark intel says that it is there"
    vendors = folder / "vendors"
    vendors.mkdir()
    (vendors / "intel.icd").write_text(f"{found}\n")
    return {"OCL_ICD_VENDORS": str(vendors)}
