from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import For, Origin
from refcomp.passes import serialize_loops as module
from refcomp.passes.serialize_loops import serialize_loops
from tests.passes.docstring_examples import assert_docstring_holds


def test_docstring():
    assert_docstring_holds(module, serialize_loops)


def test_other_loops_stay():
    text = """
    func f(A: i64[4] out) {
      for b in range(4) blockIdx.x { for i in range(2) vectorized { for j in range(2) unrolled {
        A[b + i + j] = 0
      } } }
    }
    """
    func = parse_func(text)
    assert serialize_loops(func) is func


def test_all_of_them_with_their_origins():
    text = "for i in range(4) parallel { for j in range(4) parallel { A[i] = j } }"
    func = parse_func(f"func f(A: i64[4] out) {{ {text} }}")
    origin = Origin("A", "i", "parallel")
    after = serialize_loops(func.with_body(with_fields(func.body, origin=origin)))
    assert {node.kind for node in walk(after.body) if isinstance(node, For)} == {"serial"}
    assert after.body.origin is origin


def test_a_pragma_of_parallel_loops_is_gone():
    loop = "for i in range(4) parallel { A[i] = i }"
    pragma = f"pragma parallel_stride_pattern 1 {{ {loop} }}"
    after = serialize_loops(parse_func(f"func f(A: i64[4] out) {{ {pragma} }}"))
    assert isinstance(after.body, For)
