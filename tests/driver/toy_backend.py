"""A whole back end, registered from outside of refcomp: scalar C, compiled by clang for this host.

Prints bools, integers, f32, f64 and, as integers, bf16; loops of any kind run in order. Refuses all
else with Unsupported: vectors, f16, atomic updates, calls of functions outside the loop IR.
`toy_c.toml` spells the nodes, `toy_clang.toml` is the toolchain.
"""

import tomllib
from dataclasses import replace
from pathlib import Path

from refcomp import Backend, Unsupported
from refcomp.codegen.signature import machine_symbol
from refcomp.driver.backend import Code
from refcomp.driver.backends.llvm import load_shared_object
from refcomp.driver.steps import HOST_STEPS
from refcomp.foundation.artifacts import Source
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Call, Var
from refcomp.ir.node import Node
from refcomp.toolchain import compile_source, read_description

_HERE = Path(__file__).parent
_C = tomllib.loads((_HERE / "toy_c.toml").read_text(encoding="utf-8"))
_CHAIN = read_description(_HERE / "toy_clang.toml")
_LEFT_OUT = ("vectorize_loops", "unroll_loops", "outline_parallel")  # every loop is a serial one


def _type(item):
    if str(item.dtype) not in _C["type"]:
        raise Unsupported(f"the toy does not print {item.dtype}", remedy="the target llvm does")
    return _C["type"][str(item.dtype)]


class _Printer(dict):
    """Prints functions; holds the names of their variables and buffers."""

    def __missing__(self, item):
        return self.setdefault(item, f"{machine_symbol(item.name)}_{len(self)}")

    def text(self, part):
        if isinstance(part, Var | Buffer):
            return self[part]
        if isinstance(part, tuple):
            texts = [self.text(one) for one in part]
            return ("" if "\n" in "".join(texts) else ", ").join(texts)
        return self.node(part) if isinstance(part, Node) else "" if part is None else str(part)

    def node(self, node):
        names = [node.name] if isinstance(node, Call) else [c.__name__ for c in type(node).__mro__]
        templates = [_C["node"][name] for name in names if name in _C["node"]]
        if not templates or getattr(node, "predicate", None) is not None:
            raise Unsupported(f"the toy does not print {names[0]}", where=repr(node))
        fields = {name: self.text(getattr(node, name)) for name in node.__match_args__}
        place = getattr(node, "buffer", node)
        fields |= {"shape": self.text(getattr(place, "shape", ())), "op": names[0]}
        fields |= {"T": _type(place)} if hasattr(place, "dtype") else {}
        text = templates[0].format(**fields)
        cast = f"({fields['T']})" if hasattr(node, "dtype") and node.dtype.bits < 32 else ""
        return cast + (text if names[0] == "Block" else text.replace("\n", "\n  "))

    def function(self, func):
        taken = (*func.params, *func.symbols)  # an i32 symbol is the lower half of the passed i64
        params = [f"{_type(p)} {'*' * isinstance(p, Buffer)}{self[p]}" for p in taken]
        fields = {"params": ", ".join(params), "symbol": machine_symbol(func.name)}
        return _C["function"]["text"].format(number=len(self), body=self.text(func.body), **fields)


@deep_recursion()
def _compile(made, _target, _limits):
    printer = _Printer()
    text = _C["function"]["prelude"] + "".join(printer.function(func) for func in made)
    return Code(compile_source(Source(text, "c"), {}, "so", description=_CHAIN), {"c": text})


_STEPS = [replace(step, level=step.level.replace("host", "flat")) for step in HOST_STEPS]
_OWN_STEPS = tuple(step for step in _STEPS if step.name not in _LEFT_OUT)
TOY = Backend("toy", "C for this host, by clang", _OWN_STEPS, load_shared_object, _compile)
