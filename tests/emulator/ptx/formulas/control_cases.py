"""Cases of branches, calls and barriers: small programs whose results are known."""

from __future__ import annotations

from collections.abc import Iterator

from tests.emulator.ptx.formulas.cases import THREADS, Case

_CALLED = """
.func (.param .b32 out) twice(.param .b32 given) {
.reg .b32 %z; ld.param.b32 %z, [given]; add.u32 %z, %z, %z; st.param.b32 [out], %z; ret;
}
"""


def control_cases() -> Iterator[Case]:
    """Each of bra, brx, call, ret, exit, bar and barrier."""
    yield Case(
        "bra", "mov.u32 %y0, 0; and.b32 %t, %x0, 15; again: .reg .pred %more; "
        "setp.eq.u32 %more, %t, 0; @%more bra done; add.u32 %y0, %y0, %t; sub.u32 %t, %t, 1; "
        "bra.uni again; done:",
        ("b32",), ("b32",), lambda rows: [[sum(range((a & 15) + 1))] for (a,) in rows],
    )  # fmt: skip
    yield Case(
        "brx.idx", "and.b32 %t, %x0, 1; ways: .branchtargets first, second; "
        "brx.idx %t, ways; first: mov.u32 %y0, 10; bra after; second: mov.u32 %y0, 20; after:",
        ("b32",), ("b32",), lambda rows: [[20 if a & 1 else 10] for (a,) in rows],
    )  # fmt: skip
    yield Case(
        "call", "{ .param .b32 give; .param .b32 take; st.param.b32 [give], %x0; "
        "call.uni (take), twice, (give); ld.param.b32 %y0, [take]; }",
        ("b32",), ("b32",), lambda rows: [[2 * a & 0xFFFFFFFF] for (a,) in rows], before=_CALLED,
    )  # fmt: skip
    for form in ("bar.sync", "barrier.sync", "barrier.sync.aligned"):
        yield Case(
            form, "st.shared.b32 [%shared], %x0; mov.u32 %t, block; add.u32 %t, %t, "
            f"{64 * (THREADS - 1)}; mov.u32 %c, %tid.x; shl.b32 %c, %c, 6; sub.u32 %t, %t, %c; "
            f"{form} 0; ld.shared.b32 %y0, [%t];",
            ("b32",), ("b32",), lambda rows: [*reversed(rows)],
        )  # fmt: skip
    yield Case(
        "bar.arrive", "mov.u32 %c, %tid.x; .reg .pred %early; setp.lt.u32 %early, %c, 32; "
        "mov.u32 %t, block; st.shared.b32 [%shared], %x0; mov.u32 %y0, %x0; "
        f"@%early bra give; bar.sync 1, {THREADS}; sub.u32 %c, %c, 32; mad.lo.u32 %t, %c, 64, %t; "
        f"ld.shared.b32 %y0, [%t]; bra over; give: bar.arrive 1, {THREADS}; over:",
        ("b32",), ("b32",), lambda rows: [*rows[:32], *rows[:32]],
    )  # fmt: skip
    yield Case(
        "exit", "mov.u32 %y0, %x0; and.b32 %t, %x0, 1; setp.ne.u32 %q, %t, 0; "
        "@%q st.global.b64 [%out], 7; @%q exit;",
        ("b32",), ("b32",), lambda rows: [[7 if a & 1 else a] for (a,) in rows],
    )  # fmt: skip
