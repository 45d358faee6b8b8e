"""`refcomp mutate`: how much wrong code our comparison notices, and how much a tolerance does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from refcomp.cli.options import examples, json_option
from refcomp.cli.outcomes import FAILED
from refcomp.cli.programs import load_program
from refcomp.cli.streams import progress, write_json
from refcomp.driver.backend import usual_backend
from refcomp.foundation.errors import UserError
from refcomp.mutate.compiler import score_compiler
from refcomp.mutate.loop_ir import score_loop_ir
from refcomp.mutate.mutant import COMPARISONS, OURS, Mutant
from refcomp.mutate.subjects import Subject, subjects
from refcomp.mutate.templates import score_templates

LEAST = 95.0
_LOOPS, _COMPILER = "loop-ir", "compiler"
_SPELLINGS = ("llvm", "opencl", "amdgpu")
_ALL = "all"


@click.command("mutate", epilog=examples("refcomp mutate --of loop-ir --count 500"))
@click.argument("program", metavar="[SCRIPT.py[:NAME]]", required=False)
@click.option(
    "--of",
    "chosen",
    type=click.Choice([_LOOPS, _COMPILER, *_SPELLINGS, _ALL]),
    multiple=True,
    help="What is mutated: loop IR after each pass; the compiler's own functions that schedule, "
    "lower and pass; the templates of a language, run as machine code. Several times for "
    "several. By default loop-ir of a program; compiler and llvm, too, without one.",
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How many mutants of each, about, drawn from all.",
)
@click.option("--all", "try_all", is_flag=True, help="All mutants: many minutes.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of what is drawn."
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    program: str | None,
    chosen: tuple[str, ...],
    count: int,
    try_all: bool,
    seed: int,
    as_json: bool,
) -> None:
    """See which comparisons notice wrong code.

    Makes wrong code of right code, by small changes in places that are drawn, and compares what it
    does with what is right: by the interpreter, exactly, and by tolerances. Of loop IR and of the
    compiler with small computations of refcomp's own, or with a program's schedules, whose extents
    must be constant and small. Fails when ours notices less than 95 % of the wrong code of a kind.
    """
    families = _families(program, chosen)
    found: dict[str, list[Mutant]] = {}
    for name, try_some in families.items():
        with progress(f"trying mutants of {name}"):
            found[name] = list(try_some(10**9 if try_all else count, seed))
    report = to_json(found)
    if as_json:
        write_json(report)
    else:
        click.echo(to_text(report))
    if any(
        _percent(part["noticed"][OURS], part["wrong"]) < LEAST
        for part in report["of"].values()
    ):
        context.exit(FAILED)


def _families(
    program: str | None, chosen: Sequence[str]
) -> Mapping[str, Callable[[int, int], Iterator[Mutant]]]:
    """What tries mutants, by the name of what is mutated."""
    own = subjects() if program is None else _subjects_of(program)
    known: dict[str, Callable[[int, int], Iterator[Mutant]]] = {
        _LOOPS: lambda count, seed: score_loop_ir(own, count, seed),
        _COMPILER: lambda count, seed: score_compiler(own, count, seed),
        **{target: _scored_templates(target) for target in _SPELLINGS},
    }
    default = (_LOOPS, _COMPILER, "llvm") if program is None else (_LOOPS,)
    names = tuple(known) if _ALL in chosen else tuple(chosen) or default
    return {name: try_some for name, try_some in known.items() if name in names}


def _scored_templates(target: str) -> Callable[[int, int], Iterator[Mutant]]:
    return lambda count, seed: score_templates(target, count, seed)


def _subjects_of(program: str) -> list[Subject]:
    found = []
    for piece in load_program(program).pieces:
        if piece.schedule is None:
            raise UserError(
                f"{piece.func.name} cannot be mutated",
                why="it has no schedule, and so nothing to be compared with",
                remedy="return (schedule, [arguments])",
            )
        threads = any(stage.threads.bound for stage in piece.schedule.stages)
        kind = usual_backend(threads).name
        found.append(Subject(piece.func.name, kind, piece.schedule, piece.args))
    return found


def to_json(found: Mapping[str, Sequence[Mutant]]) -> dict[str, Any]:
    """The counts by policy and by kind of mutation, of all and of what was mutated, and the
    survivors of ours with a reason."""
    together = [mutant for mutants in found.values() for mutant in mutants]
    return {
        **_counts(together),
        "of": {name: _counts(part) for name, part in found.items()},
    }


def _counts(mutants: Sequence[Mutant]) -> dict[str, Any]:
    wrong = [mutant for mutant in mutants if mutant.is_wrong]
    by_kind = Counter(mutant.operator for mutant in wrong)
    return {
        "mutants": len(mutants),
        "equivalent": dict(Counter(m.equivalent for m in mutants if m.equivalent)),
        "refused": dict(Counter(m.stillborn for m in mutants if m.stillborn)),
        "wrong": len(wrong),
        "noticed": _noticed(wrong),
        "kinds": {
            kind: {"wrong": count, **_noticed([m for m in wrong if m.operator == kind])}
            for kind, count in sorted(by_kind.items())
        },
        "survivors": [
            {"mutant": str(mutant), "reason": mutant.reason}
            for mutant in wrong
            if OURS not in mutant.killed_by
        ],
    }


def _noticed(mutants: Sequence[Mutant]) -> dict[str, int]:
    return {
        policy: sum(policy in m.killed_by for m in mutants) for policy in COMPARISONS
    }


def to_text(report: dict[str, Any]) -> str:
    """The report as a table of each kind of what was mutated, with what is none and what survives
    below it, and all of them together at the end."""
    blocks = [_to_block(name, part) for name, part in report["of"].items()]
    if len(blocks) > 1:
        blocks.append(
            _to_table("", {"all": {"wrong": report["wrong"], **report["noticed"]}})
        )
    return "\n".join(blocks)


def _to_block(name: str, part: dict[str, Any]) -> str:
    rows = {**part["kinds"], "all": {"wrong": part["wrong"], **part["noticed"]}}
    lines = [_to_table(name, rows)]
    lines.append(f"{part['mutants']} mutants, {part['wrong']} of them wrong code")
    lines += [
        f"  {count} equivalent: {why}" for why, count in part["equivalent"].items()
    ]
    lines += [f"  {count} no code: {why}" for why, count in part["refused"].items()]
    lines += [f"  survives: {s['mutant']} ({s['reason']})" for s in part["survivors"]]
    return "\n".join([*lines, ""])


def _to_table(name: str, rows: Mapping[str, Mapping[str, int]]) -> str:
    width = max(map(len, (*rows, name, "comparison off by one")))
    lines = [
        " ".join(
            [name.ljust(width), "wrong", *(f"{policy:>11}" for policy in COMPARISONS)]
        )
    ]
    for kind, row in rows.items():
        shares = [
            f"{_percent(row[policy], row['wrong']):>9.1f} %" for policy in COMPARISONS
        ]
        lines.append(" ".join([kind.ljust(width), f"{row['wrong']:5}", *shares]))
    return "\n".join(lines)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else math.nan
