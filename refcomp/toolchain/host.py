"""Facts that the compiler knows about a processor: triple, data layout, instructions, names.

One run of llc gives all: sums of vectors of integers and a fused multiply-add, stopped after
instruction selection. It shows the data layout, the processor that `native` means, the widths of
its additions, and a call of `fmaf` if it has no such instruction. The cache remembers the facts for
each tool and processor.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from refcomp.foundation.cache import Cache, default_cache
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.machine import cpu_identity
from refcomp.foundation.near_misses import did_you_mean
from refcomp.foundation.private_folder import private_folder
from refcomp.foundation.target import SYSTEM_LIB, Target, foreign_triple
from refcomp.foundation.triples import architecture_of
from refcomp.toolchain.description import Description, Option, load_description
from refcomp.toolchain.find import FoundTools
from refcomp.toolchain.remember import recall
from refcomp.toolchain.steps import fill_arguments, run_checked, write_input
from refcomp.toolchain.versions import version_text

_PROBE = """\
define <16 x i32> @f(<16 x i32> %a, <16 x i32> %b) {
  %c = add <16 x i32> %a, %b
  ret <16 x i32> %c
}
define <32 x i16> @g(<32 x i16> %a, <32 x i16> %b) {
  %c = add <32 x i16> %a, %b
  ret <32 x i16> %c
}
declare float @llvm.fma.f32(float, float, float)
define float @h(float %a, float %b, float %c) {
  %d = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %d
}
"""
_LAYOUT = re.compile(r'target datalayout = "([^"]*)"')
_CPU = re.compile(r'"target-cpu"="([^"]*)"')
_TRIPLE = re.compile(r"Default target: (\S+)")
# An addition of integers in a wide register, as LLVM calls it; by the letters, the width. AVX
# alone has 256-bit registers, but adds integers in halves, and so has none of AVX2's functions.
_WIDE_ADDITION = re.compile(r"\bVPADDD(Y|Z|Z256)rr\b")
# The same of integers of 16 bits: AVX-512F alone adds them in registers of 256 bits.
_WIDE_WORD_ADDITION = re.compile(r"\bVPADDW(Y|Z|Z256)rr\b")
_WIDTHS = {"Y": 256, "Z256": 256, "Z": 512}

# The function of the C library, which is called in place of the instruction.
_FMA_CALL = "&fmaf"

_MAX_LISTED = 8  # values of an option that an error names


@dataclass(frozen=True, slots=True)
class HostFacts:
    """llc's facts about a processor."""

    triple: str  # of the target, as in LLVM IR
    layout: str  # the data layout, as in LLVM IR
    cpu: str  # LLVM's name, such as `znver3`
    vector_bits: int  # of the widest native vector: 128, 256 or 512
    has_fma: bool  # an instruction multiplies and adds f32, and rounds once
    word_bits: int  # of the widest native vector of 16-bit integers, likewise


def host_triple_and_layout() -> tuple[str, str]:
    """Return the target triple and the data layout of this host, as in LLVM IR."""
    facts = host_facts("native")
    return facts.triple, facts.layout


def vector_bits(mcpu: str) -> int:
    """Return the width in bits of the widest native vector of `mcpu`: 128, 256 or 512.

    `native` means this host.

    Raises:
        UserError: llc does not know the processor.
    """
    return host_facts(mcpu).vector_bits


def llvm_options(target: Target) -> dict[str, str]:
    """Return the options of the toolchain `llvm` for a target of that kind."""
    options = dict(target.options)
    options.pop(SYSTEM_LIB, None)  # for saved files, not for tools
    triple = foreign_triple(target)
    if not triple:
        options.pop("mtriple", None)
        return options
    attributes = architecture_of(triple).attributes
    return {"mcpu": "generic", "mattr": attributes, **options}


def target_facts(target: Target) -> HostFacts:
    """Return the facts about the processor of a target of the kind `llvm`."""
    options = llvm_options(target)
    mcpu, mtriple, mattr = (
        options.get(key, "") for key in ("mcpu", "mtriple", "mattr")
    )
    return host_facts(mcpu or "native", mtriple, mattr)


def host_facts(mcpu: str, mtriple: str = "", mattr: str = "") -> HostFacts:
    """Return the facts about the processor `mcpu`; its name is resolved if it is `native`.

    Args:
        mcpu: the name.
        mtriple: the machine, '' for this host.
        mattr: features of the processor, in addition to its own.
    """
    description = load_description("llvm")
    options = {"mcpu": mcpu, "mtriple": mtriple, "mattr": mattr}
    asked = (_PROBE, *description.steps["probe"].arguments)
    parts = ("facts", *options.values(), host_part(description, options), *asked)

    def ask(tools: FoundTools) -> bytes:
        check_options(description, tools, options, default_cache())
        return _probe(description, tools, options)

    return HostFacts(**json.loads(recall(default_cache(), description, parts, ask)))


def host_part(description: Description, options: Mapping[str, str]) -> str:
    """Return the part of a cache key that depends on this machine; '' if none does."""
    host_values = (
        value in description.options[key].host_values for key, value in options.items()
    )
    return cpu_identity() if any(host_values) else ""


def check_option(name: str, option: str, value: str) -> None:
    """Raise UserError for a value that the tool of the toolchain `name` does not accept.

    The error lists the accepted values.
    """
    description = load_description(name)
    parts = ("option", option, value, *description.options[option].listing)

    def ask(tools: FoundTools) -> bytes:
        check_options(description, tools, {option: value}, default_cache())
        return b""

    recall(default_cache(), description, parts, ask)


def known_values(name: str, option: str) -> list[str]:
    """Return the values of an option that the tool of the toolchain `name` accepts."""
    description = load_description(name)
    return _known_values(description, description.options[option], default_cache())


def check_options(
    description: Description,
    tools: FoundTools,
    options: Mapping[str, str],
    store: Cache,
) -> None:
    """Raise UserError, with the accepted values, for a value that the tool does not accept."""
    for key, value in options.items():
        option = description.options[key]
        if not option.listing or value in option.host_values:
            continue
        triple = options.get("mtriple", "")
        known = _known_values(description, option, store, triple)
        if value not in known:
            holes = _listing_holes(description, tools, option, triple)
            command = fill_arguments(option.listing, holes)
            shown = f"{len(known)} values, not this one"
            if len(known) <= _MAX_LISTED:
                shown = " ".join(known)
            raise UserError(
                f"{key} {value!r} is unknown to the {description.name} toolchain",
                where=f"-{key}={value}",
                why=f"{command[0]} knows: {shown}",
                remedy=_known_remedy(
                    () if triple else option.host_values, value, known, command
                ),
            )


def _known_remedy(
    host_values: Sequence[str], value: str, known: Sequence[str], command: Sequence[str]
) -> str:
    """Return near values, the value for this host, and the command that lists all values."""
    host = " or ".join(host_values)
    if len(known) > _MAX_LISTED:
        choices = f"use {host} for this host, or " if host else ""
        choices += f"one of those that are listed by: {shlex.join(command)}"
    elif host:
        choices = f"use one of them, or {host} for this host"
    else:
        choices = "use one of them"
    return f"{did_you_mean(value, known)} {choices}".strip()


def _known_values(
    description: Description, option: Option, store: Cache, triple: str = ""
) -> list[str]:
    def ask(tools: FoundTools) -> bytes:
        holes = _listing_holes(description, tools, option, triple)
        command = fill_arguments(option.listing, holes)
        with private_folder() as folder:
            completed = run_checked(description, command, folder)
        # llc prints its list to stderr.
        text = completed.stdout.decode(errors="replace") + completed.stderr
        return "\n".join(option.known.findall(text)).encode()

    listed = recall(store, description, ("known", triple, *option.listing), ask)
    return listed.decode().split("\n")


def _listing_holes(
    description: Description, tools: FoundTools, option: Option, triple: str
) -> dict[str, str]:
    holes = dict(tools.paths)
    if any("{triple}" in argument for argument in option.listing):
        holes["triple"] = triple or _default_triple(description, tools)
    return holes


def _default_triple(description: Description, tools: FoundTools) -> str:
    return _search(_TRIPLE, version_text(tools.paths["llc"], description.version))


def _probe(
    description: Description, tools: FoundTools, options: Mapping[str, str]
) -> bytes:
    with private_folder() as folder:
        source = write_input(folder / description.input, _PROBE.encode())
        holes = {**tools.paths, **options, "input": str(source)}
        command = fill_arguments(description.steps["probe"].arguments, holes)
        text = run_checked(description, command, folder).stdout.decode(errors="replace")
    facts = HostFacts(
        triple=options["mtriple"] or _default_triple(description, tools),
        layout=_search(_LAYOUT, text),
        cpu=_search(_CPU, text),
        vector_bits=_widest(_WIDE_ADDITION, text),
        word_bits=_widest(_WIDE_WORD_ADDITION, text),
        has_fma=_FMA_CALL not in text,
    )
    return json.dumps(asdict(facts)).encode()


def _widest(addition: re.Pattern[str], text: str) -> int:
    return max((_WIDTHS[letters] for letters in addition.findall(text)), default=128)


def _search(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    if match is None:
        raise ToolchainError(f"llc's answer holds no {pattern.pattern!r}", why=text)
    return match[1]
