"""Which step of a schedule or of the pipeline changed a result, if any did.

The first and the last program are compared with what was asked for: three of them are interpreted.
Only where they differ, or when every step is asked for, each prefix of the recorded primitives is
lowered and compared, and what each pass changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from refcomp.certificates.certificate import Difference
from refcomp.certificates.judge import Judge, Runnable
from refcomp.certificates.versions import Version, versions
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.func import PrimFunc
from refcomp.schedule.schedule import Schedule, replay
from refcomp.schedule.step import Step

Guilty = tuple[str, Difference]
_DEFAULT = "the program as lowered by default"


@dataclass(frozen=True, slots=True)
class Search:
    """The lowered `func` on its way to targets of `kind`, under one judge.

    Attributes:
        compared: collects the programs that are compared
        schedule: the schedule that `func` comes from; None if there is none
        lower_again: lowers another schedule of the same computation
        passes: collects the passes that changed the program
    """

    func: PrimFunc
    kind: str
    judge: Judge
    compared: list[str]
    schedule: Schedule | None = None
    lower_again: Callable[[Schedule], PrimFunc] | None = None
    passes: list[str] = field(default_factory=list)

    def find(self, every_step: bool) -> Guilty | None:
        """The first guilty step and the difference, None when all programs agree."""
        made = list(versions(self.func, self.kind))
        self.passes[:] = [version.name for version in made[1:]]
        difference = self._first_and_last(made)
        if difference is None and not every_step:
            return None
        found = self._guilty_primitive() or self._guilty_pass(made)
        if found is None and difference is not None:
            return "the passes together", difference
        return found

    def _first_and_last(self, made: list[Version]) -> Difference | None:
        """The last program that has a meaning on field elements, on these; the first and the last
        of all on floats."""
        self.compared.extend(
            ["the first program", f"the last program, of {made[-1].name}"]
        )
        first, exact = made[0].program, [v for v in made if v.is_exact][-1].program
        assert isinstance(exact, PrimFunc)
        floats, last_floats = (self.judge.arguments.floats() for _ in range(2))
        difference = self.judge.on_field(exact) or self.judge.on_floats(first, floats)
        if difference is not None:
            return difference
        last = made[-1].program
        if any(version.rounds for version in made):
            return self.judge.on_floats(last, last_floats)
        return self.judge.to_the_bit(last, last_floats, first, floats)

    def _prefixes(self) -> Iterator[tuple[Step | None, PrimFunc]]:
        """Each step with the program of the schedule up to it; none for the default's."""
        if self.schedule is None or self.lower_again is None:
            return
        for count in range(len(self.schedule.steps) + 1):
            steps = self.schedule.steps[:count]
            try:
                func = self.lower_again(replay(self.schedule.outputs, steps))
                first, *_ = versions(func, self.kind)
            except (UserError, Unsupported):
                # A schedule may be illegal until its next steps are taken: by a rule of lowering,
                # or by one of a pass, such as that kernels do not share local memory.
                continue
            assert isinstance(first.program, PrimFunc)
            yield (steps[-1] if steps else None), first.program

    def _guilty_primitive(self) -> Guilty | None:
        before: PrimFunc | None = None
        for step, func in self._prefixes():
            self.compared.append(str(step) if step else _DEFAULT)
            floats = self.judge.arguments.floats()
            difference = self.judge.on_field(func, before) or self.judge.on_floats(
                func, floats
            )
            if difference is not None:
                return (f"{step}, at {step.line}," if step else "lowering"), difference
            before = func
        return None

    def _guilty_pass(self, made: list[Version]) -> Guilty | None:
        """Each version against the bits of the one before; where it may round in another way,
        against the bounds. As long as it has a meaning on field elements, on these, too."""
        before: Runnable | None = None
        wanted = self.judge.arguments.floats()
        for version in made:
            program, floats = version.program, self.judge.arguments.floats()
            if before is None:
                difference = self._of_itself(program, None) or self.judge.on_floats(
                    program, floats
                )
            else:
                self.compared.append(version.name)
                difference = (
                    self.judge.on_floats(program, floats)
                    if version.rounds
                    else self.judge.to_the_bit(program, floats, before, wanted)
                ) or (self._of_itself(program, before) if version.is_exact else None)
            if difference is not None:
                name = "lowering" if before is None else f"pass {version.name}"
                return name, difference
            before, wanted = program, floats
        return None

    def _of_itself(
        self, program: Runnable, before: Runnable | None
    ) -> Difference | None:
        if not isinstance(program, PrimFunc):
            return None
        return self.judge.on_field(
            program, before if isinstance(before, PrimFunc) else None
        )
