"""The search for the step of a schedule or of the pipeline that changed a result.

The first and the last program are compared with the specification, which takes three runs of the
interpreter. If they differ, or if every step is requested, more programs are compared: each prefix
of the recorded primitives, lowered, and the program after each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refcomp.certificates.certificate import Difference
from refcomp.certificates.judge import Judge, Runnable
from refcomp.certificates.versions import Version, versions
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.func import PrimFunc
from refcomp.schedule.schedule import Schedule, replay

Guilty = tuple[str, Difference]  # the step, and how it changed the result
_DEFAULT = "the program as lowered by default"


@dataclass(frozen=True, slots=True)
class Search:
    """The way of one lowered function to its target, under one judge."""

    made: Sequence[Version]  # the function, and its version after each pass
    kind: str  # of the target
    judge: Judge
    compared: list[str]  # collects the programs that are compared
    schedule: Schedule | None = None  # that the function comes from, if there is one
    # Lowers another schedule of the same computation.
    lower_again: Callable[[Schedule], PrimFunc] | None = None

    def find(self, every_step: bool) -> Guilty | None:
        """Return the first guilty step and its difference; None if all programs agree."""
        difference = self._compare_ends()
        if difference is None and not every_step:
            return None
        found = self._guilty_primitive() or self._guilty_pass()
        if found is None and difference is not None:
            return "the passes together", difference
        return found

    def _compare_ends(self) -> Difference | None:
        """Compare the first and the last program on floats.

        On field elements, compare the last program that has a meaning there.
        """
        last = self.made[-1]
        self.compared.append("the first program")
        self.compared.append(f"the last program, of {last.name}")
        exact = [version for version in self.made if version.is_exact][-1].program
        assert isinstance(exact, PrimFunc)
        first = self.made[0].program
        floats = self.judge.arguments.floats()
        difference = self.judge.on_field(exact) or self.judge.on_floats(first, floats)
        if difference is not None:
            return difference
        last_floats = self.judge.arguments.floats()
        if any(version.rounds for version in self.made):
            return self.judge.on_floats(last.program, last_floats)
        return self.judge.to_the_bit(last.program, last_floats, first, floats)

    def _guilty_primitive(self) -> Guilty | None:
        """Compare the program of each prefix of the schedule's steps."""
        if self.schedule is None or self.lower_again is None:
            return None
        before: PrimFunc | None = None
        steps = self.schedule.steps
        for count in range(len(steps) + 1):
            try:
                prefix = replay(self.schedule.outputs, steps[:count])
                first, *_ = versions(self.lower_again(prefix), self.kind)
            except (UserError, Unsupported):
                # A schedule may be illegal until its next steps are taken. A rule of lowering may
                # refuse it, or a rule of a pass: for example, kernels cannot share local memory.
                continue
            func = first.program
            assert isinstance(func, PrimFunc)
            step = steps[count - 1] if count else None
            self.compared.append(str(step) if step else _DEFAULT)
            floats = self.judge.arguments.floats()
            difference = self.judge.on_field(func, before)
            difference = difference or self.judge.on_floats(func, floats)
            if difference is not None:
                return f"{step}, at {step.line}," if step else "lowering", difference
            before = func
        return None

    def _guilty_pass(self) -> Guilty | None:
        """Compare the bits of each version with those of the version before.

        A version that may round differently is compared with the bounds. A version that has a
        meaning on field elements is compared on these, too.
        """
        first = self.made[0].program
        floats = self.judge.arguments.floats()
        difference = self._on_field(first, None)
        difference = difference or self.judge.on_floats(first, floats)
        if difference is not None:
            return "lowering", difference
        before, expected = first, floats
        for version in self.made[1:]:
            self.compared.append(version.name)
            program = version.program
            floats = self.judge.arguments.floats()
            if version.rounds:
                difference = self.judge.on_floats(program, floats)
            else:
                difference = self.judge.to_the_bit(program, floats, before, expected)
            if difference is None and version.is_exact:
                difference = self._on_field(program, before)
            if difference is not None:
                return f"pass {version.name}", difference
            before, expected = program, floats
        return None

    def _on_field(
        self, program: Runnable, before: Runnable | None
    ) -> Difference | None:
        if not isinstance(program, PrimFunc):
            return None
        right = before if isinstance(before, PrimFunc) else None
        return self.judge.on_field(program, right)
