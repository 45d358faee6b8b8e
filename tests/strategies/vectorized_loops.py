"""Functions with one vectorized loop, rich in guards, lazy reads and accesses that may conflict.

Lanes are i = 0 .. 3; an inner loop runs k = 0 .. 2. The parameters are A (read only), B, C and
T, of LENGTHS elements, and m in 0 .. 7; T may be memory of an iteration instead. A is so short
that reading it where a guard forbids it is out of range.

Never made: other dtypes than i64; more than one vectorized loop; inner loops with other kinds.
About one in ten functions reads out of range even in serial order: who draws must reject it.
"""

from hypothesis import strategies as st

LENGTHS = (6, 16, 16, 16)

_OWN = ("i", "3 - i", "2 * i + 1", "k * 4 + i")
_ANY = ("i + 1", "i + k", "i - 1 + k", "k", "2 * i", "i * 4 + k", "i // 2", "i * k")
_GUARDS = (
    "i < m",
    "i < m",
    "i >= m",
    "i + k < m",
    "i <= m and k < m",
    "i == 1 or i < m",
    "m > i * 2",
    "m < i + 3",
)
_GUARDED_READS = (
    "if_then_else(i + k < 6, A@[i + k], {})",
    "if_then_else(i >= 2, A@[i - 2], {})",
    "if_then_else(m < i + 2, A@[m] + {}, 5)",
    "if_then_else(i < m, if_then_else(m <= 4, A@[4], {}), 2)",
    "if_then_else(i == m, {}, A@[5 - i])",
    "if_then_else(i + 6 <= m, A@[m + 1], if_then_else(i < m, A@[m - 1], {}))",
    "(let t.{n}: i64 = A@[i] + {} in t.{n} * t.{n})",
)


class _Drawn:
    """Draws the text of a loop body. Each buffer is written at one index of its own, mostly."""

    def __init__(self, draw):
        self.pick = lambda options: draw(st.sampled_from(options))
        self.rarely = lambda: draw(st.integers(0, 7)) == 7
        self.own = {name: self.pick(_OWN) for name in "BCT"}
        self.names = 0

    def index(self, buffer):
        return self.pick(_ANY) if self.rarely() else self.own[buffer]

    def value(self, depth):
        buffer = self.pick("BCT")
        leaf = self.pick((f"{buffer}@[{self.index(buffer)}]", "i * 7 + k", "A@[i]", "A@[m % 6]"))
        if depth == 0:
            return leaf
        self.names += 1
        a, b, guard = self.value(depth - 1), self.value(depth - 1), self.pick(_GUARDS)
        read = self.pick(_GUARDED_READS).format(a, n=self.names)
        return self.pick((read, f"{a} + {b}", f"select({guard}, {a}, {b})", f"max({read}, {b})"))

    def store(self):
        buffer = self.pick("BCT")
        return f"{buffer}@[{self.index(buffer)}] = {self.value(self.pick((0, 1, 1, 2)))}\n"

    def body(self, depth=2):
        if depth == 0:
            return self.store()
        first, second, guard = self.body(depth - 1), self.body(depth - 1), self.pick(_GUARDS)
        if self.rarely():
            self.names += 1
            return f"for z{self.names} in range(i) {{ {first} }} "
        guarded = f"if ({guard}) {{ {first} }}"
        return self.pick((first, first + second, guarded, f"{guarded} else {{ {second} }}"))


@st.composite
def vectorized_loops(draw):
    """The text of a function."""
    drawn = _Drawn(draw)
    inner, params = drawn.body(), "A: i64[6], B: i64[16] out, C: i64[16] out, m: i64"
    loop = f"for k in range(3) {{ {inner} }} " + drawn.store().replace("k", "m % 3")
    if draw(st.booleans()):
        fill = "for z in range(16) { T@[z] = z * i }"
        loop = (
            f"alloc T: i64[16] {{ {fill} {loop} C@[{drawn.own['C'].replace('k', '1')}] = T@[m] }}"
        )
    else:
        params += ", T: i64[16] out"
    return f"func f({params}) {{ for i in range(4) vectorized {{ {loop} }} }}"
