import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate
from refcomp.ir.verify import verify
from refcomp.passes import reuse_storage as module
from refcomp.passes.reuse_storage import reuse_storage
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, reuse_storage)


def _chain(buffers, uses):
    """A function that allocates `buffers` (name: type and scope) and in statement k copies an
    element from the first of uses[k] to the second."""
    text = " ".join(f"{b}@[0] = {a}@[0]" for a, b in uses)
    for name, kind in reversed(buffers.items()):
        text = f"alloc {name}: {kind} {{ {text} }}"
    return parse_func(f"func f(A: f32[n], B: f32[m] out) {{ {text} }}")


def _allocated(func):
    return [
        print_func(func).split(f"alloc {node.buffer.name}: ")[1].split(" {")[0]
        for node in walk(func.body)
        if isinstance(node, Allocate)
    ]


_LINE = [("A", "T"), ("T", "U"), ("U", "V"), ("V", "W"), ("W", "B")]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["f32[8]", "f32[8]", "f32[8]", "f32[8]"], ["f32[8]", "f32[8]"]),
        (["f32[8]", "f32[4]", "f32[2]", "f32[4]"], ["f32[8]", "f32[4]"]),
        (["f32[2]", "f32[4]", "f32[8]", "f32[9]"], ["f32[8]", "f32[9]"]),  # both grow
        (["f32[2, 3]", "f32[4]", "f32[6]", "f32[5]"], ["f32[2, 3]", "f32[5]"]),
        (["f32[n]", "f32[m]", "f32[n]", "f32[m]"], ["f32[n]", "f32[m]"]),
        (["f32[n]", "f32[m]", "f32[m]", "f32[n]"], ["f32[n]", "f32[m]", "f32[m]"]),
        (["f32[8]", "f32[n]", "f32[n]", "f32[8]"], ["f32[8]", "f32[n]", "f32[n]"]),
        (["f32[8] align 64", "f32[8]", "f32[8] align 128", "f32[8]"],
         ["f32[8] align 128", "f32[8]"]),
        (["f32[8] local"] * 4, ["f32[8] local"] * 4),
    ],
)  # fmt: skip
def test_sizes(kinds, expected):
    func = reuse_storage(_chain(dict(zip("TUVW", kinds, strict=True)), _LINE))
    verify(func, "flat")
    assert _allocated(func) == expected


def test_the_smallest_that_is_large_enough_is_taken():
    kinds = {"S": "f32[9]", "T": "f32[5]", "U": "f32[7]", "V": "f32[4]"}
    uses = [("A", "S"), ("S", "T"), ("T", "U"), ("U", "B"), ("A", "V"), ("V", "B")]
    func = reuse_storage(_chain(kinds, uses))
    # U takes S's memory, which is free by then; V the 5 of T, not the 9.
    assert _allocated(func) == ["f32[9]", "f32[5]"]
    assert "T@[0] = A@[0]" in print_func(func)


def test_types_do_not_share():
    func = parse_func(
        """
        func f(A: f32[8] out) {
          alloc T: f32[8] { alloc U: i32[8] {
            T@[0] = 1f32 A@[0] = T@[0] U@[0] = 1i32 A@[1] = f32(U@[0])
          } }
        }
        """
    )
    assert reuse_storage(func) is func


def test_a_loop_is_one_statement():
    text = """
    func f(A: f32[8] out) {{
      alloc T: f32[8] {{ alloc U: f32[8] {{
        {} T@[0] = 1f32 A@[0] = T@[0] U@[0] = 1f32 A@[1] = U@[0] {}
      }} }}
    }}
    """
    assert len(_allocated(reuse_storage(parse_func(text.format("", ""))))) == 1
    func = parse_func(text.format("for i in range(3) {", "}"))
    assert reuse_storage(func) is func


def test_allocations_in_a_loop_share_there():
    func = parse_func(
        """
        func f(A: f32[8] out) {
          for i in range(8) {
            alloc T: f32[8] { alloc U: f32[8] {
              T@[0] = 1f32 A@[i] = T@[0] U@[0] = 1f32 A@[i] = U@[0]
            } }
          }
        }
        """
    )
    assert len(_allocated(reuse_storage(func))) == 1


@pytest.mark.search
@given(runnable_funcs("flat"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(reuse_storage, *drawn, "flat")


@st.composite
def pipelines(draw):
    """Stages that each read some of the ones before, all of them in global memory."""
    count = draw(st.integers(2, 7))
    sizes = [draw(st.integers(1, 4)) for _ in range(count)]
    text = ""
    for k in range(count):
        reads = draw(st.lists(st.integers(0, k - 1), max_size=3)) if k else []
        total = " + ".join([f"{k + 1}", *(f"T{r}@[i % {sizes[r]}] * {r + 2}" for r in reads)])
        text += f"for i in range({sizes[k]}) {{ T{k}@[i] = {total} }} "
        text += f"A@[{k}] = T{k}@[{sizes[k] - 1}] "
    for k in reversed(range(count)):
        text = f"alloc T{k}: i64[{sizes[k]}] {{ {text} }}"
    return parse_func(f"func f(A: i64[{count}] out) {{ {text} }}")


@pytest.mark.search
@given(pipelines())
def test_pipelines(func):
    assert_meaning_is_kept(reuse_storage, func, {}, "flat")
    assert print_func(reuse_storage(reuse_storage(func))) == print_func(reuse_storage(func))
