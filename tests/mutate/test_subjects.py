"""The subjects are right, and between them leave nothing untried that a mutation could change."""

from refcomp.certificates import certify
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Barrier, IfThenElse
from refcomp.lowering.lower import lower
from refcomp.mutate.loop_ir import stages_of
from refcomp.mutate.mutations import OPERATORS, mutations_of
from refcomp.mutate.subjects import subjects


def test_each_is_certified() -> None:
    for subject in subjects():
        assert certify(subject.schedule, subject.args, name=subject.name).holds


def test_all_kinds_of_mutations_apply_and_guards_and_barriers_are_needed() -> None:
    funcs = [func for subject in subjects() for _, func in stages_of(subject)]
    assert {m.operator for func in funcs for m in mutations_of(func)} == set(OPERATORS)
    for needed in (Barrier, IfThenElse):
        assert sum(isinstance(node, needed) for func in funcs for node in walk(func)) >= 4


def test_they_are_made_anew() -> None:
    first, second = subjects(), subjects()
    assert [s.name for s in first] == [s.name for s in second]
    assert len({s.name for s in first}) == len(first)
    assert first[0].schedule is not second[0].schedule
    lower(first[0].schedule, first[0].args, "again")
