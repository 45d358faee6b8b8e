"""How every test of this tree runs: what it needs, what it may skip, and what is told at the end.

- Each test has one tier, `quick`, `tools` or `search`, which is a mark: see tests/tiers.py.
- A test says by a mark (`llvm`, `rocm`, `pocl`, ..., `gpu`) what it needs; where that is missing
  it is skipped with the tool's name and the way to get it. With CI=true only `gpu` and `intel` may
  be skipped: any other skip is a failure.
- A test that needs `intel` runs with `--nightly` only; without, it is not selected.
- `REFCOMP_CACHE_DIR` is an empty folder of this run, shared by its workers and removed afterwards;
  so is `POCL_CACHE_DIR`, where PoCL keeps what it compiles.
- `REFCOMP_VERIFY_STEPS` is 1: every build verifies the loop IR after each step.
- `REFCOMP_TRACEBACK` is `full`: failures show refcomp's own frames, which users do not see.
- Hypothesis draws the same examples in each run; `--nightly` draws many more, and new ones.
- A test that never ends is stopped after `timeout` of setup.cfg and fails; `--nightly` waits.
- `record_property("summary", TEXT)` in a test prints TEXT at the end, from a worker too.
"""

import gc
import glob
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.tiers import assign_tier, held_to_its_tier, watch_opencl, watch_tools

ROOT = Path(__file__).resolve().parent
WORKER_LIMITS = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "OPENBLAS_NUM_THREADS": "1",
}

# Objects, and collections of younger ones, before Python collects garbage. After the usual 700, 10
# and 10 it looks at all objects so often that a test takes up to a tenth longer.
_COLLECTOR = (1000, 20, 100)

# Time is never a property of a test: neither a deadline nor a slow machine may fail one.
_TIMELESS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=50, print_blob=True, **_TIMELESS)
settings.register_profile("nightly", max_examples=1000, print_blob=True, **_TIMELESS)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="draw many more examples, and new ones")
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--nightly"):
        settings.load_profile("nightly")
        config.option.timeout = 0
    else:
        settings.load_profile("ci")
        _draw_by_the_seed_alone()
    os.environ.setdefault("REFCOMP_TRACEBACK", "full")
    os.environ.setdefault("REFCOMP_VERIFY_STEPS", "1")
    # A module that an earlier test built would hide what a later test changes in the compiler.
    os.environ["REFCOMP_BUILD_CACHE"] = "0"
    watch_tools()
    gc.disable()  # all that a collection of tests makes stays
    if _is_worker(config):
        return
    cache = tempfile.mkdtemp(prefix="refcomp-tests-")
    os.environ["REFCOMP_CACHE_DIR"] = cache
    os.environ["POCL_CACHE_DIR"] = os.path.join(cache, "pocl")
    config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))
    if config.getoption("numprocesses", None):
        os.environ.update(WORKER_LIMITS)


def _draw_by_the_seed_alone() -> None:
    """Hypothesis also draws numbers and texts that stand in the modules imported so far: what a
    seed draws would change with each edit of any file, and with the tests that ran before."""
    known = providers._local_constants  # there is no public switch; a test shows that it works
    providers._get_local_constants = lambda: known


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


# What a test may need. Each function returns why it cannot be had here, or "".


def _lack_of_llvm() -> str:
    folders = [os.environ.get("PATH", ""), *glob.glob("/usr/lib/llvm-*/bin")]
    tools = {
        tool: [f"{tool}-{major}" for major in range(40, 14, -1)] + [tool]
        for tool in ("opt", "llc", "ld.lld")
    }
    lacking = [
        tool
        for tool, names in tools.items()
        if not any(shutil.which(name, path=os.pathsep.join(folders)) for name in names)
    ]
    return f"no {', '.join(lacking)}: apt-get install llvm-19 lld-19" if lacking else ""


def _lack_of_nvcc() -> str:
    wheel = importlib.util.find_spec("nvidia")
    places = [f"{root}/*/bin/nvcc" for root in (wheel and wheel.submodule_search_locations) or ()]
    places += [f"{root}/bin/nvcc" for root in (os.environ.get("CUDA_HOME"), "/usr/local/cuda*")]
    if shutil.which("nvcc") or any(glob.glob(place) for place in places):
        return ""
    return "no nvcc: pip install nvidia-cuda-nvcc, or install the CUDA toolkit"


def _lack_of_nvrtc() -> str:
    names = ("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm", "nvidia-cuda-cuobjdump")
    lacking = [name for name in names if not _is_installed(name)]
    return f"no {', '.join(lacking)}: pip install 'refcomp[nvidia]'" if lacking else ""


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _lack_of_gcc() -> str:
    return "" if shutil.which("g++") else "no g++: apt-get install g++"


def _lack_of_pocl() -> str:
    remedy = "pip install pyopencl, apt-get install pocl-opencl-icd"
    if importlib.util.find_spec("pyopencl") is None:
        return f"no pyopencl: {remedy}"
    import pyopencl  # noqa: PLC0415 (optional, and slow to import)

    try:
        names = [platform.name for platform in pyopencl.get_platforms()]
    except pyopencl.Error as error:
        return f"no OpenCL platform ({error}): {remedy}"
    return "" if "Portable Computing Language" in names else f"no PoCL among {names}: {remedy}"


def _lack_of_intel() -> str:
    variable = "REFCOMP_TEST_INTEL_OPENCL"
    if named := os.environ.get(variable):
        return "" if os.path.exists(named) else f"no {named}, which {variable} names"
    if not _is_installed("intel-opencl-rt"):
        remedy = "pip install 'refcomp[intel]'"
        return f"no intel-opencl-rt: {remedy}, or let {variable} name a libintelocl.so"
    return "" if importlib.util.find_spec("pyopencl") else "no pyopencl: pip install pyopencl"


def _lack_of_oclgrind() -> str:
    remedy = "apt-get install oclgrind; pip install pyopencl"
    if shutil.which("oclgrind") is None:
        return f"no oclgrind: {remedy}"
    return "" if importlib.util.find_spec("pyopencl") else f"no pyopencl: {remedy}"


def _lack_of_gpu() -> str:
    if any(os.path.exists(path) for path in ("/dev/kfd", "/dev/nvidiactl")):
        return ""
    return "no GPU: neither /dev/kfd (AMD) nor /dev/nvidiactl (NVIDIA) is there"


def _lack_of_browser() -> str:
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if lacking:
        return f"no {', '.join(lacking)}: apt-get install chromium chromium-driver"
    return "" if importlib.util.find_spec("selenium") else "no selenium: pip install selenium"


def _lack_of_clang() -> str:
    folders = [os.environ.get("PATH", ""), *glob.glob("/usr/lib/llvm-*/bin")]
    names = ("clang", *(f"clang-{major}" for major in range(40, 14, -1)))
    if any(shutil.which(name, path=os.pathsep.join(folders)) for name in names):
        return ""
    return "no clang: apt-get install clang-19"


def _lack_of_rocm() -> str:
    places = ("/opt/rocm", "/usr/lib/*-linux-gnu", "/usr/lib/llvm-*/lib/clang/*/lib")
    if not any(glob.glob(f"{place}/amdgcn/bitcode/ocml.bc") for place in places):
        return "no ocml.bc: apt-get install rocm-device-libs"
    return _lack_of_version(19)


def _lack_of_version(major: int) -> str:
    tools = ("opt", "llc", "ld.lld", "llvm-link", "llvm-objdump")
    return _lack_of_tools(f"/usr/lib/llvm-{major}/bin", tools, str(major))


def _lack_of_tools(folder: str, tools: tuple[str, ...], major: str) -> str:
    lacking = [tool for tool in tools if not shutil.which(tool, path=folder)]
    if not lacking:
        return ""
    return f"no {', '.join(lacking)} in {folder}: apt-get install llvm-{major} lld-{major}"


NEEDS: dict[str, Callable[[], str]] = {
    "llvm": _lack_of_llvm,
    "rocm": _lack_of_rocm,
    "llvm15": lambda: _lack_of_version(15),
    "llvm16": lambda: _lack_of_version(16),
    "clang": _lack_of_clang,
    "nvcc": _lack_of_nvcc,
    "nvrtc": _lack_of_nvrtc,
    "gcc": _lack_of_gcc,
    "pocl": _lack_of_pocl,
    "oclgrind": _lack_of_oclgrind,
    "intel": _lack_of_intel,
    "browser": _lack_of_browser,
    "gpu": _lack_of_gpu,
}


# What only `--nightly` runs.
_NIGHTLY = "intel"
# What CI may skip.
_OPTIONAL = ("gpu", _NIGHTLY)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    for item in items:
        assign_tier(item, NEEDS)
    yield  # to those who select by marks and names
    if not config.getoption("--nightly"):
        late = [item for item in items if item.get_closest_marker(_NIGHTLY)]
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if item not in late]
    needy: dict[str, list[pytest.Item]] = {name: [] for name in NEEDS}
    for item in items:
        for name in {mark.name for mark in item.iter_markers()} & NEEDS.keys():
            needy[name].append(item)
    for name, those in needy.items():
        reason = NEEDS[name]() if those else ""
        for item in those if reason else ():
            item.add_marker(pytest.mark.skip(reason=reason))
    watch_opencl()


def pytest_collection_finish() -> None:
    gc.freeze()  # modules and tests stay, so that a collection looks at what tests make alone
    gc.set_threshold(*_COLLECTOR)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    with held_to_its_tier(item):
        return (yield)


# What CI may skip.


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    may_skip = any(item.get_closest_marker(name) for name in _OPTIONAL)
    if not may_skip and not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI", "") in ("", "0", "false") or not report.skipped:
        return
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: CI may skip only what needs a real GPU. {why}"


# What a test may ask for.


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(NAME, TEXT)` holds TEXT against tests/golden/NAME; --update-golden writes it."""

    def check(name: str, text: str) -> None:
        path = ROOT / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        assert text == expected, f"differs from {path}; if that is right: pytest --update-golden"

    return check


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own


# What is told at the end.


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report
        for group in terminalreporter.stats.values()
        for report in group
        if isinstance(report, pytest.TestReport)
    ]
    for title, lines in (
        ("told by tests", _told(reports)),
        ("slowest tests", _slowest(reports)),
        ("test time by folder", _time_by_folder(reports)),
        ("steps", os.environ.get("REFCOMP_STEPS", "").splitlines()),
    ):
        if lines:
            terminalreporter.section(title)
            terminalreporter.write_line("\n".join(lines))


def _told(reports: list[pytest.TestReport]) -> list[str]:
    ended = [report for report in reports if report.when == "teardown"]
    return [
        str(text) for report in ended for key, text in report.user_properties if key == "summary"
    ]


def _slowest(reports: list[pytest.TestReport]) -> list[str]:
    """The ten tests that took longest, set-up and all."""
    seconds: Counter[str] = Counter()
    for report in reports:
        seconds[report.nodeid] += report.duration
    return [f"{time:9.2f} s  {name}" for name, time in seconds.most_common(10)]


def _time_by_folder(reports: list[pytest.TestReport]) -> list[str]:
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for report in reports:
        folder = "/".join(report.nodeid.partition("::")[0].split("/")[:-1][:2])
        seconds[folder] += report.duration
        tests[folder] += report.when == "teardown"
    return [f"{time:9.2f} s {tests[name]:6d}  {name}" for name, time in seconds.most_common()]


@pytest.fixture(autouse=True)
def _operators_of_tests() -> Iterator[None]:
    """Remove the operators that a test registered: others list and draw all operators."""
    yield
    module = sys.modules.get("refcomp.topi.operator")
    registered = getattr(module, "_OPERATORS", {})
    for name, operator in list(registered.items()):
        if not operator.compute.__module__.startswith("refcomp."):
            del registered[name]
