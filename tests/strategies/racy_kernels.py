"""Random little kernels of two groups of three threads, right ones and wrong ones.

Drawn: stores, reads and atomic additions on shared and on global memory, at places that some
threads or groups share; barriers, at top level, in loops and where groups differ; conditions that
threads or groups differ in; shared memory that is cleared first, or not.

Never drawn: barriers that some threads of a group do not reach, accesses out of range, atomic
updates whose order shows in the result. What is read ends up in the output, as no judge need mind
a value that nobody uses.
"""

from hypothesis import strategies as st

_PLACES = ("t", "(t + 1) % 3", "2 - t", "g", "0", "g * 3 + t", "t * 2 % 3")
_IN_LOOP = ("k", "(t + k) % 3")
_CONDITIONS = ("t == 0", "t == 1", "t < 2", "g == 0", "g == 1")
_DEEPEST = 2


def _place(draw, in_loop):
    own = draw(st.sampled_from((True, True, False)))
    elsewhere = _PLACES + _IN_LOOP if in_loop else _PLACES
    where = "g * 3 + t" if own else draw(st.sampled_from(elsewhere))
    return f"{draw(st.sampled_from('SSG'))}[{where}]"


def _condition(draw, in_loop, is_uniform, depth):
    condition = draw(st.sampled_from((*_CONDITIONS, "k == 0") if in_loop else _CONDITIONS))
    inside = _stmts(draw, in_loop, is_uniform and "t" not in condition, depth + 1)
    return f"if ({condition}) {{ {inside} }}"


def _stmt(draw, in_loop, is_uniform, depth):
    kinds = ["store", "store", "read", "read", "atomic"]
    kinds += ["barrier", "barrier"] if is_uniform else []
    kinds += ["condition", "condition"] if depth < _DEEPEST else []
    kinds += [] if in_loop else ["loop"]
    match draw(st.sampled_from(kinds)):
        case "barrier":
            return "barrier"
        case "loop":
            return f"for k in range(2) {{ {_stmts(draw, True, is_uniform, depth)} }}"
        case "condition":
            return _condition(draw, in_loop, is_uniform, depth)
        case "atomic":
            return f"atomic add {_place(draw, in_loop)} with i32(t)"
        case "store":
            return f"{_place(draw, in_loop)} = i32(t) + 1i32"
    return f"O[g * 3 + t] = O[g * 3 + t] + {_place(draw, in_loop)}"


def _stmts(draw, in_loop, is_uniform, depth):
    count = draw(st.integers(1, 3))
    return " ".join(_stmt(draw, in_loop, is_uniform, depth) for _ in range(count))


@st.composite
def kernel_texts(draw):
    """The text of a function NAME(O: i32[6], G: i32[8]) with a kernel, NAME to be put in."""
    clear = draw(st.sampled_from(("S[t] = 0i32 S[t + 3] = 0i32 barrier", "")))
    body = " ".join(_stmts(draw, False, True, 0) for _ in range(2))
    return f"""
    func NAME(O: i32[6] out, G: i32[8] out) {{
      for g in range(2) blockIdx.x {{ for t in range(3) threadIdx.x {{
        alloc S: i32[6] shared {{ {clear} {body} }}
      }} }}
    }}
    """
