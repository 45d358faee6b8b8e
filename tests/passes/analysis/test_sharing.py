from refcomp.foundation.dtype import BOOL, F32, I64
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.expr import Add, Call, FloatImm, IfThenElseExpr, IntImm, Mul, Ramp, Var
from refcomp.passes.analysis.sharing import LetScope, Sharing, count_bindings

J, N, C = Var("i", I64), Var("n", I64), Var("c", BOOL)
A = Buffer("A", F32, (N,))


def _decided(*uses):
    """The lets of each place, as expressions, after noting the uses (expression, place)."""
    sharing = Sharing([])
    for expr, place in uses:
        sharing.use(expr, place)
    sharing.decide()
    return sharing, lambda place: [type(sharing.expr(number)) for number, _ in place.lets]


def test_equal_arithmetic_has_one_number_in_all_places():
    sharing, root = Sharing([]), LetScope(None)
    first, second = LetScope(root), LetScope(root)
    assert sharing.number(Mul(J, N), first) == sharing.number(Mul(J, N), second)
    assert sharing.number(Mul(J, N), first) != sharing.number(Mul(N, J), first)


def test_reads_have_a_number_for_each_statement():
    sharing, root = Sharing([]), LetScope(None)
    first, second = LetScope(root), LetScope(root)
    assert sharing.number(Load(A, J), first) == sharing.number(Load(A, J), first)
    assert sharing.number(Load(A, J), first) != sharing.number(Load(A, J), second)
    call = Call("exp", (Load(A, J),), F32)
    assert sharing.number(call, first) != sharing.number(call, second)


def test_zeros_of_different_sign_differ():
    sharing, place = Sharing([]), LetScope(None)
    zeros = [FloatImm(0.0, F32), FloatImm(-0.0, F32)]
    assert len({sharing.number(zero, place) for zero in zeros}) == 2


def test_uses_meet_at_the_innermost_place_around_all():
    root = LetScope(None)
    block = LetScope(root)
    first, second = LetScope(block), LetScope(block)
    _, lets = _decided((Mul(J, N), first), (Mul(J, N), second))
    assert (lets(root), lets(block), lets(first)) == ([], [Mul], [])


def test_a_parts_place_is_where_its_parent_is_evaluated():
    root = LetScope(None)
    first, second = LetScope(root), LetScope(root)
    whole = Add(Mul(J, N), IntImm(1, I64))
    _, lets = _decided((whole, first), (whole, second))
    assert lets(root) == [Add]  # the product is evaluated once, within the sum


def test_both_branches_make_certain_and_one_does_not():
    place = LetScope(None)
    value = Load(A, J)
    both = IfThenElseExpr(C, Add(value, value), value)
    sharing, lets = _decided((both, place))
    assert lets(place) == [Load]
    one = LetScope(None)
    branch = IfThenElseExpr(C, Add(value, value), FloatImm(0.0, F32))
    sharing, lets = _decided((branch, one))
    assert lets(one) == []
    inner = one.barrier(sharing.number(branch, one), "true_value")
    assert lets(inner) == [Load]


def test_ramps_are_never_named_but_their_bases_are():
    place = LetScope(None)
    ramp = Ramp(Mul(J, N), IntImm(1, I64), 4)
    _, lets = _decided((ramp, place), (ramp, place))
    assert lets(place) == [Mul]


def test_variables_bound_twice_are_told():
    assert count_bindings([J, N, J]) == [J]
