"""`refcomp mutate`: how much wrong code our comparison notices, and how much a tolerance does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from refcomp.cli.options import json_option
from refcomp.cli.outcomes import FAILED
from refcomp.cli.programs import load_program
from refcomp.cli.streams import progress, write_json
from refcomp.errors import UserError
from refcomp.mutate.score import OURS, POLICIES, Mutant, score
from refcomp.mutate.subjects import Subject, subjects

LEAST = 95.0
_UNEXPLAINED = "no data that was tried tells it apart"
_NEVER_EQUAL = "the two compared are never equal where it counts, whatever was tried"


@click.command("mutate")
@click.argument("program", metavar="[SCRIPT.py[:NAME]]", required=False)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How many mutants, at least, drawn from all.",
)
@click.option("--all", "try_all", is_flag=True, help="All mutants: minutes.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    program: str | None,
    count: int,
    try_all: bool,
    seed: int,
    as_json: bool,
) -> None:
    """See which comparisons notice wrong code.

    Mutates what lowering and each pass make of small computations of refcomp's own, or of a
    program's schedules, whose extents must be constant and small. Fails when the interpreter and
    exact comparison notice less than 95 % of the wrong ones.
    """
    chosen = subjects() if program is None else _subjects_of(program)
    with progress("trying mutants"):
        found = list(score(chosen, 10**9 if try_all else count, seed))
    report = to_json(found)
    if as_json:
        write_json(report)
    else:
        click.echo(to_text(report))
    if report["wrong"] and report["noticed"][OURS] < LEAST / 100 * report["wrong"]:
        context.exit(FAILED)


def _subjects_of(program: str) -> list[Subject]:
    found = []
    for piece in load_program(program).pieces:
        if piece.schedule is None:
            raise UserError(
                f"{piece.func.name} cannot be mutated",
                why="it has no schedule, and so nothing to be compared with",
                remedy="return (schedule, [arguments])",
            )
        threads = any(stage.threads for stage in piece.schedule.stages)
        kind = "opencl" if threads else "llvm"
        found.append(Subject(piece.func.name, kind, piece.schedule, piece.args))
    return found


def to_json(mutants: Sequence[Mutant]) -> dict[str, Any]:
    """The counts by policy and by kind of mutation, and the survivors of ours with a reason."""
    wrong = [mutant for mutant in mutants if not mutant.equivalent]
    by_kind = Counter(mutant.mutation.kind for mutant in wrong)
    return {
        "mutants": len(mutants),
        "equivalent": dict(Counter(m.equivalent for m in mutants if m.equivalent)),
        "wrong": len(wrong),
        "noticed": _noticed(wrong),
        "kinds": {
            kind: {"wrong": count, **_noticed([m for m in wrong if m.mutation.kind == kind])}
            for kind, count in sorted(by_kind.items())
        },
        "survivors": [
            {"mutant": str(mutant), "reason": _reason(mutant)}
            for mutant in wrong
            if OURS not in mutant.noticed
        ],
    }


def _reason(mutant: Mutant) -> str:
    return _NEVER_EQUAL if mutant.mutation.kind == "comparison off by one" else _UNEXPLAINED


def _noticed(mutants: Sequence[Mutant]) -> dict[str, int]:
    return {policy: sum(policy in m.noticed for m in mutants) for policy in POLICIES}


def to_text(report: dict[str, Any]) -> str:
    """The report as a table, and the survivors below it."""
    width = max([len(kind) for kind in report["kinds"]] + [len("all")])
    lines = [" ".join([" " * width, "wrong", *(f"{policy:>11}" for policy in POLICIES)])]
    rows = {**report["kinds"], "all": {"wrong": report["wrong"], **report["noticed"]}}
    for kind, row in rows.items():
        shares = [f"{_percent(row[policy], row['wrong']):>9.1f} %" for policy in POLICIES]
        lines.append(" ".join([kind.ljust(width), f"{row['wrong']:5}", *shares]))
    lines.append(f"{report['mutants']} mutants, {report['wrong']} of them wrong code")
    lines += [f"  {count} equivalent: {why}" for why, count in report["equivalent"].items()]
    lines += [f"  survives: {s['mutant']} ({s['reason']})" for s in report["survivors"]]
    return "\n".join(lines)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else math.nan
