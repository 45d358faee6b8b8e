#!/usr/bin/env python3
"""Follows one matrix product from tensor expressions to machine code, stage by stage.

The stages stand in the order of the architecture tour (the docstring of refcomp/__init__.py), each
with the file to read about it. Needs LLVM's tools. Exit code: 1 when two stages disagree.
"""

import re
import sys
from collections.abc import Sequence

import numpy as np

import refcomp as rc
from refcomp import toolchain
from refcomp.arith import Facts, prove
from refcomp.driver.backends import backend_of
from refcomp.driver.compile import compile_to_source
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.ir.func import PrimFunc
from refcomp.ir.structure import structurally_equal
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.te.tensor import Tensor

ROWS, DEPTH, COLUMNS, TILE = 8, 64, 16, 2
SHOWN = ("flatten_storage", "vectorize_loops", "unroll_loops", "outline_parallel", "introduce_lets")


def tell(stage: str, file: str, text: object) -> None:
    """Print one stage of the tour."""
    print(f"\n== {stage} (refcomp/{file})\n{str(text).rstrip()}")


def inner_loop(text: str) -> str:
    """Return the basic block of LLVM IR or assembly that multiplies most."""
    blocks = re.split(r"(?m)^(?=[\w.]+:|\S+ %bb)", text)
    return max(blocks, key=lambda block: len(re.findall(r"\bv?f?(?:mul|mla|madd)", block)))


def describe() -> tuple[rc.Schedule, list[Tensor]]:
    """Walk through stages 1 and 2: what to compute, and how."""
    A, B = rc.placeholder((ROWS, DEPTH), name="A"), rc.placeholder((DEPTH, COLUMNS), name="B")
    k = rc.reduce_axis((0, DEPTH), name="k")
    C = rc.compute((ROWS, COLUMNS), lambda i, j: rc.sum(A[i, k] * B[k, j], axis=k), name="C")
    tell("1. te: what to compute", "te/operation.py", f"{C.name}{C.shape} = {C.op.body[0]}")
    s = rc.create_schedule(C)
    i, j = C.op.axis
    rows, row = s[C].split(i, factor=TILE)
    s[C].reorder(rows, k, row, j)
    s[C].unroll(row)
    s[C].vectorize(j)
    s[C].parallel(rows)
    tell("2. schedule: how", "schedule/schedule.py", "\n".join(map(str, s.steps)))
    return s, [A, B, C]


def lower_in_steps(schedule: rc.Schedule, args: Sequence[Tensor]) -> PrimFunc:
    """Walk through stages 3 to 6: the loop IR, facts about it, and the results of the passes."""
    func = result = rc.lower(schedule, args, name="matmul")
    tell("3. lowering: one function of the loop IR", "lowering/lower.py", rc.print_func(func))
    again = structurally_equal(rc.parse_func(rc.print_func(func)), func)
    tell("4. ir: its text, read back, is the same tree", "ir/parser.py", again)
    rows, row = rc.var("rows", "int64"), rc.var("row", "int64")
    facts = Facts().bind(rows, rc.const(0, "int64"), rc.const(ROWS // TILE, "int64"))
    inside = rows * TILE + row < ROWS
    proved = prove(inside, facts.bind(row, rc.const(0, "int64"), rc.const(TILE, "int64")))
    tell("5. arith: why no guard is needed", "arith/prove.py", f"proved {inside}: {proved}")
    for step in passes_for("llvm"):
        result = run_pass(step, result)
        if step.name in SHOWN:
            tell(f"6. {step.name}: {step.reason}", f"passes/{step.name}.py", rc.print_func(result))
    return func


def main() -> int:
    """Walk through all stages; return the exit code."""
    schedule, args = describe()
    func = lower_in_steps(schedule, args)
    source = compile_to_source([func], "llvm")
    tell("7. codegen: the inner loop in LLVM IR", "codegen/llvm/module.py", inner_loop(source.text))
    assembly = toolchain.compile_source(source, {}, "asm").data.decode()
    tell("8. toolchain: the same in assembly", "toolchain/compile.py", inner_loop(assembly))
    random = np.random.default_rng(0)  # small integers: every order of summing gives the same
    a = random.integers(-8, 8, (ROWS, DEPTH)).astype(np.float32)
    b = random.integers(-8, 8, (DEPTH, COLUMNS)).astype(np.float32)
    c, interpreted = np.empty((ROWS, COLUMNS), np.float32), np.empty((ROWS, COLUMNS), np.float32)
    module = rc.build(schedule, args, target="llvm", name="matmul")
    module(a, b, c)
    interpret(func, [a, b, interpreted])
    agree = {"numpy": bool((c == a @ b).all()), "the interpreter": bool((c == interpreted).all())}
    tell("9. runtime: it runs, and equals", "runtime/module.py", agree)
    record = backend_of("llvm")
    tell("10. driver: the record of this target", "driver/backends/llvm.py", record.summary)
    tell("11. compiler: all of that in one call", "compiler.py", module)
    return int(not all(agree.values()))


if __name__ == "__main__":
    sys.exit(main())
