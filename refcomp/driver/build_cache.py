"""Modules in the cache on disk, under all that their code depends on.

The key of a module consists of:

- what is built, as the caller describes it: the identity of a schedule, names of functions
- the target with its options, and all build options
- refcomp's own version, and in a checkout the state of its sources (`foundation/own_sources.py`)
- this processor, and the tools and the device of the target
- the environment variables of refcomp and of the tools

Ensures: a module from the cache equals the module that a build would make, with the same texts.
An entry that is damaged, malformed or cannot be loaded counts as missing. A build that prints a
warning is not kept, so that it warns each time.

The cache is neither read nor written for these builds:

- builds that show their stages (REFCOMP_DUMP, REFCOMP_KEEP), or that are certified
- builds for the interpreter
- builds for targets that are registered from outside, or with the user's own shared objects
  (`-libs=`), since refcomp does not know what their results depend on

REFCOMP_BUILD_CACHE=0 turns the cache off, for code that changes refcomp while it runs.
"""

from __future__ import annotations

import json
import os
import reprlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, cast

from refcomp.driver import text_forms  # noqa: F401  (registers the tools of `save`)
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.build_warnings import warning_count
from refcomp.foundation.cache import Cache, Label, default_cache
from refcomp.foundation.dump import is_dumping, is_keeping
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.machine import cpu_identity
from refcomp.foundation.options import current_options
from refcomp.foundation.own_sources import is_own_version_current, own_version
from refcomp.foundation.own_targets import OWN_KINDS
from refcomp.foundation.surroundings import state_of
from refcomp.foundation.target import Target
from refcomp.foundation.target_kind import TargetKind
from refcomp.runtime.device import device
from refcomp.runtime.module import Module
from refcomp.runtime.module_bytes import module_from_bytes, module_to_bytes

if TYPE_CHECKING:
    from refcomp.runtime.launch import DeviceDriver

VARIABLE = "REFCOMP_BUILD_CACHE"
# Variables of refcomp that change no code.
_WITHOUT_EFFECT = frozenset(
    {
        VARIABLE,
        "REFCOMP_CACHE_DIR",
        "REFCOMP_CACHE_LIMIT",
        "REFCOMP_NUM_THREADS",
        "REFCOMP_TRACEBACK",
    }
)


def recall_module(
    parts: Sequence[str] | None, target: Target, make: Callable[[], Module]
) -> Module:
    """Return a module from the cache, or make it and keep it.

    Call it under the build options that the user gave, since builds to be certified are not kept.

    Args:
        parts: what is built. Equal parts mean equal loop IR, with equal lines of the user's program
            where these reach messages. None if nothing describes it, and it is not kept.
        target: what the module is compiled for.
        make: builds the module.

    Raises:
        UserError: an environment variable of the cache has a wrong value.
        RefcompError: all errors of `make`.
    """
    if parts is None or not _is_kept(target):
        return make()
    store = default_cache()
    key = _key(store, parts, target)
    if key is None:
        return make()
    data = store.get(key)
    module = None if data is None else _loaded(data)
    if module is not None:
        return module
    before = warning_count()
    module = make()
    if warning_count() == before and is_own_version_current():
        _keep(store, key, module)
    return module


def _loaded(data: bytes) -> Module | None:
    """Return the module in an entry, None if it cannot be loaded here."""
    try:
        return module_from_bytes(data, _disassembled)
    except (RefcompError, ValueError):
        return None


def _keep(store: Cache, key: str, module: Module) -> None:
    try:
        data = module_to_bytes(module)
    except UserError:  # too large for a module file
        return
    if data is not None:
        label = Label("module", module.target, tuple(module.signatures))
        store.put(key, data, label)


def _disassembled(binary: Binary) -> str:
    from refcomp.toolchain.disassembly import disassemble  # noqa: PLC0415  (rare)

    return disassemble(binary)


def _is_kept(target: Target) -> bool:
    """Return True if modules for the target are kept, under the present options."""
    if not _is_on() or is_dumping() or is_keeping() or current_options().certify:
        return False
    kind = OWN_KINDS.get(target.kind)
    has_known_inputs = kind is not None and kind.toolchains is not None
    return has_known_inputs and not target.option("libs", "")


def _key(store: Cache, parts: Sequence[str], target: Target) -> str | None:
    """Return the key of a module, None if its tools or refcomp's own version are not known."""
    kind = OWN_KINDS[target.kind]
    version = own_version()
    if version is None:
        return None
    tools = _tools_part(store, version, kind.toolchains or ())
    if tools is None:
        return None
    options = repr(astuple(current_options()))
    surroundings = (cpu_identity(), _device_part(kind), _environment_part())
    return Cache.key(
        "module", version, str(target), options, *surroundings, tools, *parts
    )


def _is_on() -> bool:
    text = os.environ.get(VARIABLE, "")
    if text not in ("", "0", "1"):
        raise UserError(
            f"{VARIABLE} is {reprlib.repr(text)}, which is neither 0 nor 1",
            where=f"environment variable {VARIABLE}",
            remedy="set it to 0 to build without the cache of modules; otherwise unset it",
        )
    return text != "0"


def _environment_part() -> str:
    """Return all variables of refcomp that may change code."""
    names = (name for name in os.environ if name.startswith("REFCOMP_"))
    chosen = sorted(name for name in names if name not in _WITHOUT_EFFECT)
    return repr([(name, os.environ[name]) for name in chosen])


def _device_part(kind: TargetKind) -> str:
    """Return the limits and the architecture of the device, '' if the host runs the code."""
    if kind.limits is None:
        return ""
    found = device(kind.device)
    if not found.exist:
        return "no device"
    driver = cast("DeviceDriver", found.driver)
    limits = driver.limits(found.index)
    arch = getattr(driver, "arch", None)
    name = arch(found.index) if arch else ""
    # The order of a set differs between processes.
    return repr((name, sorted(limits.features), replace(limits, features=frozenset())))


def _tools_part(store: Cache, version: str, toolchains: Sequence[str]) -> str | None:
    """Return the identity of the tools and their files, None if tools are missing.

    The cache remembers it with the variables and paths on which it depends, since a search would
    take longer than all else.
    """
    if not toolchains:
        return ""
    packages = [path for path in sys.path if path.endswith("-packages")]
    searched = repr((toolchains, sys.executable, sys.prefix, packages))
    key = Cache.key("tools", version, searched)
    data = store.get(key)
    identity = None if data is None else _current_identity(data)
    if identity is None:
        from refcomp.toolchain.tools_state import tools_state  # noqa: PLC0415  (slow)

        state = tools_state(toolchains)
        identity = state.identity
        now = state_of(state.variables, state.paths)
        text = json.dumps([identity, state.variables, state.paths, now])
        store.put(key, text.encode(), Label("tools", ", ".join(toolchains)))
    return identity or None


def _current_identity(data: bytes) -> str | None:
    """Return the identity of tools in an entry, None if it may have changed."""
    try:
        identity, variables, paths, then = json.loads(data)
        is_current = state_of(variables, paths) == then
    except (ValueError, TypeError):
        return None
    return identity if is_current and isinstance(identity, str) else None
