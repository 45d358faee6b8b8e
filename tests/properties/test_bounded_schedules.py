"""All schedules of up to three steps of tiny computations: each is refused, or its result is right.

Integers wrap, and so are exact in any order: what comes out of the last pass must be the very bits
of the tensor expressions. By day a legal schedule is found for each ordered pair of primitives, and
every single step is judged; at night every schedule of three steps is, and pairs on one stage too.

Nothing is judged twice: equal states are one schedule, and the passes know nothing of a program but
its text, so that two schedules have one verdict from the pass on that makes the same text of both.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import product

import numpy as np
import pytest

import refcomp
from refcomp.certificates.arguments import Arguments
from refcomp.certificates.versions import versions
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.kernels import kernels_in
from refcomp.ir.printer import print_func, print_program
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.lockstep.interpret import interpret, interpret_program
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.schedule.primitives.table import PRIMITIVES
from refcomp.schedule.schedule import Schedule, replay
from refcomp.schedule.step import Step
from tests.properties.seeded_bugs import INTERPRETED, switched_on
from tests.strategies.bounded_schedules import SPACES, every_step, state_of

Pair = tuple[str, str, str]  # two primitives, and on which stages
_ANY, _ONE = "any stages", "one stage"
_SHARDS = 4  # at night, of each computation
_CHANGED = "its loops have been changed already"
# The pairs on one stage that no schedule of three steps has, and the reason that each is refused
# for. The one intrinsic here doubles a row: what it fits reduces nothing, and copies nothing.
ILLEGAL = {
    **{
        (mark, "cache_write"): _CHANGED
        for mark in ("split", "tile", "fuse", "reorder", "vectorize", "unroll", "parallel", "bind")
    },
    ("tensorize", "cache_write"): _CHANGED,
    ("tensorize", "tensorize"): "of this stage is tensorized already",
    ("tensorize", "rfactor"): "it has no reduction",
    ("rfactor", "tensorize"): "the stage is a reduction, and tensor intrinsic double_row",
    ("cache_write", "tensorize"): "",  # legal as a step: lowering finds that the loops only copy
    ("cache_write", "rfactor"): "it has no reduction",
    ("compute_inline", "rfactor"): "it has no reduction",
    ("rfactor", "compute_inline"): "it is a reduction, which needs a loop of its own",
    ("env_threads", "env_threads"): "its threads are named already",
    # A stage that is read and runs in a kernel: its reader's loop, or its copy's, is bound as well.
    ("cache_read", "env_threads"): "what stands outside of bound loops is run by the host",
    ("env_threads", "cache_read"): "",
}
_FOR_ANY = ("row_sums", "doubled", "doubled_twice", "attached_in_a_kernel", "inlined_in_a_kernel")
# What makes other steps legal: an attached stage, a kernel, a copy.
_PREPARING = ("compute_at", "bind", "cache_read")


class Space:
    """The schedules of one computation, from some first steps on: which pairs of primitives legal
    ones have, in order, and why others were refused."""

    def __init__(self, name: str) -> None:
        given, output, self.base = SPACES[name]()
        self.name, self.args, self.outputs = name, (given, output), (output.op,)
        self.array, self.unset = Arguments(self.args, {}).floats()
        (self.wanted,) = evaluate([output], {given: self.array})
        self.known: dict[bytes, bool] = {}  # by states
        self.verdicts: dict[
            tuple, str
        ] = {}  # by places in a pipeline: why it ends there, if it does
        self.covered: Counter[Pair] = Counter()
        self.refused: dict[Pair, Counter[str]] = defaultdict(Counter)

    def tried(self, steps: Sequence[Step], only: str = "") -> Iterator[tuple[list[Step], Schedule]]:
        """Each list of `steps` and one more, of the primitive `only`, that the primitives take, and
        the schedule that it makes."""
        for step in every_step(self.replayed(steps), only):
            longer = [*steps, step]
            try:
                schedule = self.replayed(longer)
            except (UserError, Unsupported) as error:
                self._note(longer, error.why or error.what)
            else:
                yield longer, schedule

    def replayed(self, steps: Sequence[Step]) -> Schedule:
        """The schedule that the first steps and `steps` make."""
        return replay(self.outputs, [*self.base, *steps])

    def _note(self, steps: Sequence[Step], reason: str) -> None:
        for pair in pairs_of(steps):
            self.refused[pair][reason] += 1

    def is_legal(self, steps: Sequence[Step], schedule: Schedule) -> bool:
        """Whether lowering and all passes take the `schedule` of `steps`; AssertionError if they
        do, and its result is wrong."""
        state = identity(state_of(schedule))
        if state not in self.known:
            reason = self._refusal(schedule)
            self.known[state] = not reason
            if reason:
                self._note(steps, reason)
        if self.known[state]:
            self.covered.update(pairs_of(steps))
        return self.known[state]

    def _refusal(self, schedule: Schedule) -> str:
        """Why lowering or a pass refuses it; "" where none does, and its result is right."""
        way: list[tuple] = []
        try:
            func = refcomp.lower(schedule, self.args)
            kind = "opencl" if any(kernels_in(func.body)) else "llvm"
            for version in versions(func, kind):
                place = (kind, version.name, len(version.rest), text_identity(version.made))
                if place in self.verdicts:
                    reason = self.verdicts[place]
                    break
                way.append(place)
            else:
                self._run(version.program, schedule)
                reason = ""
        except (UserError, Unsupported) as error:
            reason = error.why or error.what
        self.verdicts.update(dict.fromkeys(way, reason))
        return reason

    def _run(self, program: PrimFunc | Program, schedule: Schedule) -> None:
        arrays = [self.array.copy(), self.unset.copy()]
        (interpret_program if isinstance(program, Program) else interpret)(program, arrays)
        assert np.array_equal(arrays[1], self.wanted), list(map(str, schedule.steps))


def identity(data: object) -> bytes:
    """Short for `data`, which has a repr of its own."""
    return sha256(repr(data).encode()).digest()


def text_identity(program: PrimFunc | Program) -> bytes:
    """Short for the text of a program, which parses back to it."""
    text = print_program(program) if isinstance(program, Program) else print_func(program)
    return identity(text)


def pairs_of(steps: Sequence[Step]) -> set[Pair]:
    """Each primitive with each one called after it."""
    found: set[Pair] = set()
    for k, first in enumerate(steps):
        for second in steps[k + 1 :]:
            found.add((first.primitive, second.primitive, _ANY))
            if first.stage == second.stage:
                found.add((first.primitive, second.primitive, _ONE))
    return found


# Every schedule.


def explore(space: Space, depth: int, shard: int = 0, shards: int = 1) -> None:
    """Judges every schedule of up to `depth` steps: of those with all of them, the ones that go on
    from the `shard`-th part of the shorter ones."""
    shorter: list[list[Step]] = [[]]
    for _ in range(depth - 1):
        longer = {identity(state_of(s)): steps for steps, s in _judged(space, shorter)}
        shorter = list(longer.values())
    part = -(-len(shorter) // shards)
    for _ in _judged(space, shorter[shard * part : (shard + 1) * part]):
        pass


def _judged(space: Space, shorter: Sequence[list[Step]]) -> Iterator[tuple[list[Step], Schedule]]:
    for steps in shorter:
        for longer, schedule in space.tried(steps):
            space.is_legal(longer, schedule)
            yield longer, schedule


# One schedule for each pair.


def uncovered(spaces: Sequence[Space], stages: str) -> list[Pair]:
    """The pairs on such `stages` that have no legal schedule; each is sought."""
    missing = []
    for first, second in product(PRIMITIVES, PRIMITIVES):
        pair = (first, second, stages)
        is_covered = any(pair in space.covered for space in spaces)
        if not is_covered and next(_legal(spaces, pair), None) is None:
            missing.append(pair)
    return missing


def _legal(spaces: Sequence[Space], pair: Pair) -> Iterator[tuple[Space, list[Step]]]:
    """Legal schedules of the two, and of a third before, between or behind them."""
    longer = [[*pair[:k], third, *pair[k:2]] for third in _PREPARING for k in range(3)]
    for names in ([*pair[:2]], *longer):
        for space in spaces:
            for steps, schedule in _called(space, names):
                if pair in pairs_of(steps) and space.is_legal(steps, schedule):
                    yield space, steps


def _called(space: Space, names: Sequence[str]) -> Iterator[tuple[list[Step], Schedule]]:
    """All that calls these primitives in this order."""
    if not names:
        yield [], space.replayed([])
        return
    for steps, _ in _called(space, names[:-1]):
        yield from space.tried(steps, names[-1])


def _is_found(spaces: Sequence[Space], names: tuple[str, str]) -> bool:
    """Whether a legal schedule of two steps has the pair on one stage."""
    return any(
        (*names, _ONE) in pairs_of(steps) and space.is_legal(steps, schedule)
        for space in spaces
        for steps, schedule in _called(space, names)
    )


def _told(spaces: Sequence[Space], stages: str, missing: Sequence[Pair]) -> str:
    count = len(PRIMITIVES) ** 2
    legal = sum(sum(space.known.values()) for space in spaces)
    lines = [
        f"pairs of primitives on {stages}: {count - len(missing)} of {count} covered by {legal} "
        f"legal schedules of {sum(len(space.known) for space in spaces)}; {len(PRIMITIVES)} "
        f"primitives, each before each: {', '.join(PRIMITIVES)}"
    ]
    return "\n".join([*lines, *(f"  never: {_why(spaces, pair)}" for pair in missing)])


def _why(spaces: Sequence[Space], pair: Pair) -> str:
    reasons: Counter[str] = sum((space.refused[pair] for space in spaces), Counter())
    most = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(2))
    return f"{pair[0]}, then {pair[1]}: {most}"


def test_each_pair_of_primitives_has_a_legal_schedule(record_property):
    spaces = [Space(name) for name in _FOR_ANY]
    missing = uncovered(spaces, _ANY)
    record_property("summary", _told(spaces, _ANY, missing))
    assert missing == []


def test_pairs_on_one_stage_are_covered_or_refused_by_a_rule(request, record_property):
    """By day those that are refused are tried with two steps alone."""
    spaces = [Space(name) for name in SPACES]
    if request.config.getoption("--nightly"):
        missing = uncovered(spaces, _ONE)
        record_property("summary", _told(spaces, _ONE, missing))
    else:
        missing = [(*pair, _ONE) for pair in ILLEGAL if not _is_found(spaces, pair)]
    assert {pair[:2] for pair in missing} == set(ILLEGAL)
    for pair in missing:
        reasons = [reason for space in spaces for reason in space.refused[pair]]
        assert any(ILLEGAL[pair[:2]] in reason for reason in reasons), pair


def pytest_generate_tests(metafunc):
    """At night there is enough to do for several cores."""
    if "shard" in metafunc.fixturenames:
        shards = _SHARDS if metafunc.config.getoption("--nightly") else 1
        metafunc.parametrize("shard", [f"{shard + 1} of {shards}" for shard in range(shards)])


@pytest.mark.parametrize("name", SPACES)
def test_every_schedule_is_refused_or_right(name, shard, request, record_property):
    depth = 3 if request.config.getoption("--nightly") else 1
    number, _, shards = shard.split()
    space = Space(name)
    explore(space, depth, int(number) - 1, int(shards))
    legal = sum(space.known.values())
    told = f"{len(space.known)} schedules of up to {depth} steps, {legal} legal, all right"
    record_property("summary", f"{name}, part {shard}: {told}")
    assert legal


def test_a_shared_verdict_is_that_of_the_schedule_alone():
    space, places = Space("inlined_in_a_kernel"), 0
    shorter = [steps for steps, _ in space.tried([])][::9]
    for steps, schedule in _judged(space, shorter):
        alone = Space(space.name)
        assert alone.is_legal(steps, alone.replayed(steps)) == space.is_legal(steps, schedule)
        places += len(alone.verdicts)
    assert len(space.verdicts) < places / 2, "most programs come up again"


@pytest.mark.parametrize("bug", ["lost tail guard", "vectors one lane short"])
def test_a_wrong_schedule_is_told_by_its_steps(bug):
    (seeded,) = [known for known in INTERPRETED if known.name == bug]
    with switched_on(seeded), pytest.raises((AssertionError, InterpretError)):
        explore(Space("doubled"), 2)
