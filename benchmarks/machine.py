"""A description of the machine: processor, cores and versions, without names of hosts or paths."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from refcomp.toolchain.diagnose import diagnose

_CPU_INFO = Path("/proc/cpuinfo")
_PACKAGES = ("refcomp", "numpy", "onnxruntime", "apache-tvm")


def describe_machine() -> dict[str, Any]:
    """CPU model and cores, system, versions, and how busy the machine was at the start."""
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2),
        "versions": {"python": platform.python_version(), **_packages(), **_tools()},
    }


def cpu_model(cpu_info: Path = _CPU_INFO) -> str:
    """Model name, family and model number of the first processor listed."""
    try:
        lines = cpu_info.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or "unknown"
    fields = {key.strip(): value.strip() for key, _, value in (s.partition(":") for s in lines)}
    family, model = fields.get("cpu family", "?"), fields.get("model", "?")
    return f"{fields.get('model name', 'unknown')} (family {family}, model {model})"


def _packages() -> dict[str, str]:
    return {name: _version(name) for name in _PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _tools() -> dict[str, str]:
    llc = (r for r in diagnose() if r.toolchain == "llvm" and r.name == "llc")
    return {"llvm": next((report.version for report in llc), "") or "none"}
