"""`refcomp mutate`: measures how much wrong code is noticed, by refcomp and by tolerances."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypedDict, cast

import click

from refcomp.cli.options import NameChoice, errors_and_examples, json_option
from refcomp.cli.outcomes import FAILED, ILLEGAL, NO_TOOLCHAIN
from refcomp.cli.programs import load_program
from refcomp.cli.streams import progress, write_json
from refcomp.driver.backend import usual_backend
from refcomp.foundation.errors import UserError
from refcomp.graph.pass_mutants import score_graph_passes
from refcomp.mutate.compiler import score_compiler
from refcomp.mutate.loop_ir import score_loop_ir
from refcomp.mutate.mutant import COMPARISONS, OURS, Mutant
from refcomp.mutate.subjects import Subject, subjects
from refcomp.mutate.templates import score_templates
from refcomp.te.tensor import Tensor
from refcomp.topi.mutants import score_operators

# Percent of the wrong code of a kind that refcomp's comparison must notice.
MIN_NOTICED = 95.0
_LOOPS = "loop-ir"
_COMPILER = "compiler"
_OPERATORS = "topi"
_GRAPHS = "graph"
_LANGUAGES = ("llvm", "opencl", "cuda", "amdgpu")  # of templates
_ALL = "all"
_EVERY_MUTANT = 10**9  # more than there are

# Tries so many mutants, drawn with a seed.
_Score: TypeAlias = Callable[[int, int], Iterator[Mutant]]


class MutantCounts(TypedDict):
    """The outcome of some mutants, as JSON."""

    mutants: int
    # Reason -> mutants that compute the same for this reason.
    equivalent: dict[str, int]
    refused: dict[str, int]  # reason -> mutants that did not become code
    wrong: int  # all others
    noticed: dict[str, int]  # comparison -> wrong mutants that it noticed
    # Kind of mutation -> `wrong`, and `noticed` as above.
    kinds: dict[str, dict[str, int]]
    # Wrong mutants that ours did not notice, with the reason.
    survivors: list[dict[str, str]]


class MutationReport(MutantCounts):
    """The counts of all mutants together, and of each family."""

    of: dict[str, MutantCounts]  # what was mutated, such as `loop-ir`


@click.command(
    "mutate",
    epilog=errors_and_examples(
        {
            FAILED: "refcomp's comparison noticed less than 95 % of the wrong code",
            NO_TOOLCHAIN: "a compiler of the templates' language is missing",
            ILLEGAL: "the program fails, or returns something without a schedule",
        },
        "refcomp mutate --of loop-ir --count 40",
        "refcomp mutate double.py --count 20",
    ),
)
@click.argument("program", metavar="[SCRIPT.py[:NAME]]", required=False)
@click.option(
    "--of",
    "chosen",
    type=NameChoice([_LOOPS, _COMPILER, _OPERATORS, _GRAPHS, *_LANGUAGES, _ALL]),
    multiple=True,
    help="What to mutate. loop-ir: loop IR after each pass; compiler: the functions of refcomp "
    "that schedule, lower and pass; topi: operators and their schedules; graph: the passes over "
    "graphs; llvm, opencl, cuda, amdgpu: the templates of this language, run as machine code (for "
    "cuda on this machine, by g++). May be repeated. Default: loop-ir; without a program also "
    "compiler and llvm.",
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="About how many mutants of each to draw.",
)
@click.option(
    "--all", "try_all", is_flag=True, help="Try all mutants, which takes many minutes."
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="SEED",
    help="The seed by which mutants are drawn.",
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
    """Measure which comparisons notice wrong code.

    A mutant is right code with one small change in a place that is drawn. Each mutant runs on small
    computations of refcomp's own, or on those of SCRIPT.py. Its function NAME (default:
    computation) returns (schedule, [arguments]), with constant and small extents. The example's
    double.py is in `refcomp lower --help`.

    The result is compared with the right one: by the interpreter in exact arithmetic, as refcomp's
    own checks do, and by tolerances, as tests usually do. The report is a table of the share of
    wrong mutants that each comparison notices, for each kind of change.
    """
    count = _EVERY_MUTANT if try_all else count
    found: dict[str, list[Mutant]] = {}
    for name, score in _families(program, chosen).items():
        with progress(f"trying mutants of {name}"):
            mutants = list(score(count, seed))
        if name != _GRAPHS:
            found[name] = mutants
            continue
        # A table for each file of passes.
        for mutant in mutants:
            found.setdefault(f"{_GRAPHS}: {mutant.stage}", []).append(mutant)
    report = to_json(found)
    if as_json:
        write_json(report)
    else:
        click.echo(to_text(report))
    for part in report["of"].values():
        if _percent(part["noticed"][OURS], part["wrong"]) < MIN_NOTICED:
            context.exit(FAILED)


def _families(program: str | None, chosen: Sequence[str]) -> dict[str, _Score]:
    """Return how to try the mutants of each family that is chosen."""
    own = subjects() if program is None else _subjects_of(program)
    known: dict[str, _Score] = {
        _LOOPS: partial(score_loop_ir, own),
        _COMPILER: partial(score_compiler, own),
        _OPERATORS: score_operators,
        _GRAPHS: score_graph_passes,
    }
    for language in _LANGUAGES:
        known[language] = partial(score_templates, language)
    if _ALL in chosen:
        return known
    default = (_LOOPS, _COMPILER, "llvm") if program is None else (_LOOPS,)
    return {name: known[name] for name in known if name in (chosen or default)}


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
        # Scalars are refused when the subject is tried.
        args = cast("tuple[Tensor, ...]", piece.args)
        found.append(Subject(piece.func.name, kind, piece.schedule, args))
    return found


def to_json(found: Mapping[str, Sequence[Mutant]]) -> MutationReport:
    """Return the report on the mutants of each family."""
    together = [mutant for mutants in found.values() for mutant in mutants]
    parts = {name: _counts(mutants) for name, mutants in found.items()}
    return {**_counts(together), "of": parts}


def _counts(mutants: Sequence[Mutant]) -> MutantCounts:
    wrong = [mutant for mutant in mutants if mutant.is_wrong]
    kinds = {}
    for kind in sorted({mutant.operator for mutant in wrong}):
        of_kind = [mutant for mutant in wrong if mutant.operator == kind]
        kinds[kind] = {"wrong": len(of_kind), **_noticed(of_kind)}
    return {
        "mutants": len(mutants),
        "equivalent": dict(Counter(m.equivalent for m in mutants if m.equivalent)),
        "refused": dict(Counter(m.stillborn for m in mutants if m.stillborn)),
        "wrong": len(wrong),
        "noticed": _noticed(wrong),
        "kinds": kinds,
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


def to_text(report: MutationReport) -> str:
    """Return a table for each family, with its equivalent, refused and surviving mutants below.

    If there are several families, a table of all mutants follows.
    """
    blocks = [_to_block(name, part) for name, part in report["of"].items()]
    if len(blocks) > 1:
        total = {"wrong": report["wrong"], **report["noticed"]}
        blocks.append(_to_table("", {"all": total}))
    return "\n".join(blocks)


def _to_block(name: str, part: MutantCounts) -> str:
    rows = {**part["kinds"], "all": {"wrong": part["wrong"], **part["noticed"]}}
    lines = [_to_table(name, rows)]
    lines.append(f"{part['mutants']} mutants, {part['wrong']} of them wrong code")
    for why, count in part["equivalent"].items():
        lines.append(f"  {count} equivalent: {why}")
    for why, count in part["refused"].items():
        lines.append(f"  {count} no code: {why}")
    for survivor in part["survivors"]:
        lines.append(f"  survives: {survivor['mutant']} ({survivor['reason']})")
    return "\n".join([*lines, ""])


def _to_table(name: str, rows: Mapping[str, Mapping[str, int]]) -> str:
    """Return a table with the percentage that each comparison notices, for each row."""
    # The longest name of a kind, so that tables of all families have the same width.
    width = max(map(len, (*rows, name, "comparison off by one")))
    heading = [name.ljust(width), "wrong", *(f"{policy:>11}" for policy in COMPARISONS)]
    lines = [" ".join(heading)]
    for kind, row in rows.items():
        cells = [kind.ljust(width), f"{row['wrong']:5}"]
        for policy in COMPARISONS:
            cells.append(f"{_percent(row[policy], row['wrong']):>9.1f} %")
        lines.append(" ".join(cells))
    return "\n".join(lines)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else math.nan
