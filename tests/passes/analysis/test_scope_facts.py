"""The facts of a header, and those that loops, lets and conditions add."""

from refcomp.arith import prove
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import children
from refcomp.passes.analysis.scope_facts import facts_in, facts_of

FUNC = parse_func("""
func f(A: i64[n] out, m: i64) {
  for i in range(8) {
    let k: i64 = i + 3 {
      if (m < k) {
        A[0] = if_then_else(m < 5, m, k)
      } else {
        A[0] = m
      }
    }
  }
}
""")
LOOP = FUNC.body
LET = LOOP.body
BRANCH = LET.body
M = FUNC.params[1]
N = FUNC.buffers[0].shape[0]


def test_sizes_are_not_negative_and_scalar_arguments_may_be():
    facts = facts_of(FUNC)
    assert prove(N >= 0, facts)
    assert not prove(M >= 0, facts)


def test_the_body_of_a_loop_knows_the_range_of_its_variable():
    outside = facts_of(FUNC)
    inside = facts_in(LOOP, LET, outside)
    assert prove(LOOP.var <= 7, inside)
    assert facts_in(LOOP, LOOP.extent, outside) is outside


def test_the_body_of_a_let_knows_its_value():
    inside = facts_in(LET, BRANCH, facts_in(LOOP, LET, facts_of(FUNC)))
    assert prove(LET.var <= 10, inside)
    outside = facts_of(FUNC)
    assert facts_in(LET, LET.value, outside) is outside


def test_each_case_of_a_branch_knows_whether_the_condition_holds():
    outside = facts_of(FUNC)
    assert prove(LET.var > M, facts_in(BRANCH, BRANCH.then_case, outside))
    assert prove(LET.var <= M, facts_in(BRANCH, BRANCH.else_case, outside))
    assert facts_in(BRANCH, BRANCH.condition, outside) is outside


def test_each_value_of_a_choice_knows_whether_the_condition_holds():
    choice = BRANCH.then_case.value
    outside = facts_of(FUNC)
    assert prove(M < 5, facts_in(choice, choice.true_value, outside))
    assert prove(M >= 5, facts_in(choice, choice.false_value, outside))
    assert facts_in(choice, choice.condition, outside) is outside


def test_other_nodes_add_nothing():
    outside = facts_of(FUNC)
    store = BRANCH.else_case
    assert all(facts_in(store, child, outside) is outside for child in children(store))
