"""`refcomp execute`: runs a module file, or interprets loop-IR text.

Inputs come from an .npz file or are filled. Outputs begin as zeros, unless the file has them.
Module files hold machine code: execute only what you trust.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

import click
import numpy as np

from refcomp.cli.arrays import (
    DEFAULT,
    Arrays,
    Filling,
    GivenArrays,
    add_sizes,
    chosen_sizes,
    complete,
)
from refcomp.cli.digest import digest, digest_to_text
from refcomp.cli.interpretation import in_order, interpret_program_text, interpret_text
from refcomp.cli.levels import check_unpassed, level_of
from refcomp.cli.options import (
    errors_and_examples,
    fill_mode_option,
    inputs_option,
    json_option,
    number_of,
    outputs_option,
    pair_of,
    seed_option,
    symbol_option,
    target_option,
)
from refcomp.cli.outcomes import FAILED, ILLEGAL, UNSUPPORTED
from refcomp.cli.passes import called_signatures
from refcomp.cli.streams import (
    STANDARD,
    bytes_to_text,
    name_of,
    note,
    progress,
    read_bytes,
    write_json,
)
from refcomp.cli.texts import text_to_checked_funcs
from refcomp.compiler import build_functions
from refcomp.driver.backends import backend_of
from refcomp.foundation.artifacts import (
    ScalarParam,
    Signature,
    TensorParam,
)
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.private_folder import private_folder
from refcomp.foundation.symbol_sizes import Sizes
from refcomp.foundation.target import Target
from refcomp.ir.expr import PureExtern
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import CallExtern, CallPacked
from refcomp.ir.verify import Level
from refcomp.runtime.arrays.entry_conditions import holds, refusal
from refcomp.runtime.arrays.ndarray import NDArray, array
from refcomp.runtime.arrays.npz import read_npz, write_npz
from refcomp.runtime.device import HostArray, cpu
from refcomp.runtime.function import ArrayCallable, Function
from refcomp.runtime.module import Module
from refcomp.runtime.module_file import load_module

_EXAMPLES = (10, 100, 1000, 10_000)  # sizes that messages propose
_BINARY = (b"PK", b"\x7fELF")  # first bytes of module files: ZIP archives, ELF files

Argument: TypeAlias = HostArray | int | float  # of a call
Arguments: TypeAlias = dict[str, Argument]


@click.command(
    "execute",
    epilog=errors_and_examples(
        {
            FAILED: "the call fails, for example by a data race in a kernel",
            ILLEGAL: "the file or an argument is illegal, or the text calls C functions",
            UNSUPPORTED: "the text needs what the target does not have",
        },
        "refcomp execute matmul.module -i in.npz -o out.npz",
        "refcomp execute matmul.ir --symbol n=10 --fill-mode ones",
    ),
)
@click.argument("file", default="-")
@inputs_option
@outputs_option
@fill_mode_option
@seed_option
@symbol_option
@click.option(
    "--scalar",
    "scalars",
    type=pair_of(number_of),
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of a scalar argument (default 1; 0 with --fill-mode zeros). May be repeated.",
)
@click.option(
    "--function",
    "name",
    metavar="NAME",
    help="The function to run, if there are several (default: the first).",
)
@target_option("What loop-IR text is run by (default interp)", default=None)
@click.option(
    "--as-is",
    is_flag=True,
    help="Interpret text with kernels without the passes that insert barriers.",
)
@click.option(
    "--calls",
    is_flag=True,
    help="Let loop-IR text call C functions of this host. Such a text can do whatever you can.",
)
@json_option
def command(
    file: str,
    inputs: str | None,
    outputs: str | None,
    fill_mode: str,
    seed: int,
    symbols: tuple[tuple[str, int], ...],
    scalars: tuple[tuple[str, float], ...],
    name: str | None,
    target: Target | None,
    as_is: bool,
    calls: bool,
    as_json: bool,
) -> None:
    """Run a module file, or interpret loop-IR text.

    FILE is a module file of `refcomp assemble`, or loop-IR text; - (the default) is stdin. A module
    file holds machine code: execute only what you trust.

    Text with kernels, as `refcomp lower` prints it, has no barriers. It first goes through the
    passes of the target interp, and a note on stderr lists them. Text that later passes have made
    is run as it is.

    Prints dtype, shape, minimum, maximum and first elements of each output.
    """
    with progress("loading"):
        module = _load(file, target, calls, as_is)
    if name is None and len(module.signatures) > 1:
        others = ", ".join([*module.signatures][1:])
        note(f"running {module.entry_name}; others: {others}")
    function = module.entry if name is None else module[name]
    given: Arguments = {**read_npz(inputs), **dict(scalars)}
    filling = Filling(fill_mode, seed, dict(symbols))
    arguments = make_arguments(function.signature, given, filling)
    with progress(f"running {function.name}"):
        after = _call(function, arguments)
    results: Arrays = {}
    for param in function.signature.params:
        value = after[param.name]
        is_output = isinstance(param, TensorParam) and param.is_output
        if is_output and isinstance(value, np.ndarray):
            results[param.name] = value
    digests = [digest(name, array) for name, array in results.items()]
    if as_json:
        write_json({"function": function.name, "outputs": digests})
    else:
        for entry in digests:
            click.echo(digest_to_text(entry))
    if outputs is not None:
        write_npz(outputs, results)


def _call(function: Function, arguments: Arguments) -> Arguments:
    """Return the arguments after a call. Those of a function on a device are copied there."""
    device = function.device
    if device.kind == cpu().kind:
        function(*arguments.values())
        return arguments
    placed = {
        name: array(value, device) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
    function(*placed.values())
    return {n: v.asnumpy() if isinstance(v, NDArray) else v for n, v in placed.items()}


def _load(file: str, target: Target | None, calls: bool, as_is: bool) -> Module:
    data = read_bytes(file)
    if data.startswith(_BINARY):
        return _load_archive(file, data, target)
    text = bytes_to_text(data, file)
    if text.startswith("; refcomp."):
        raise UserError(
            f"{name_of(file)} is LLVM IR text",
            remedy="send it through `refcomp assemble` first",
        )
    funcs = text_to_checked_funcs(text, file)
    if not calls:
        _refuse_calls(funcs, file)
    if target is not None and backend_of(target).compile is not None:
        check_unpassed(funcs, name_of(file))
        return build_functions(funcs, target)
    called = _callables(funcs, as_is)
    signatures = called_signatures(text, name_of(file), [func for func, _ in called])
    callables = {s.name: run for s, (_, run) in zip(signatures, called, strict=True)}
    return Module.from_callables(callables, signatures, target="interp", sources={})


def _callables(
    funcs: Sequence[PrimFunc], as_is: bool
) -> list[tuple[PrimFunc, ArrayCallable]]:
    """Return the functions that can be called, and what interprets each.

    If functions of the host launch kernels, the others are these kernels.
    """
    hosts = [func for func in funcs if level_of(func) == Level.LAUNCH]
    if hosts:
        kernels = tuple(func for func in funcs if func not in hosts)
        return [
            (host, partial(interpret_program_text, Program(host, kernels)))
            for host in hosts
        ]
    if not as_is:
        funcs = [in_order(func, "; --as-is leaves them out") for func in funcs]
    return [(func, partial(interpret_text, func)) for func in funcs]


def _refuse_calls(funcs: Sequence[PrimFunc], file: str) -> None:
    """Raise UserError for text that calls functions of the host."""
    for func in funcs:
        for node in walk(func.body):
            if isinstance(node, CallPacked | CallExtern | PureExtern):
                raise UserError(
                    f"{name_of(file)} calls {node.name}, a function of this host",
                    why="such a text can do whatever you can",
                    remedy="if it is yours, or you have read it: --calls",
                )


def _load_archive(file: str, data: bytes, target: Target | None) -> Module:
    if target is not None:
        raise UserError(
            f"{name_of(file)} is compiled already, --target {target} cannot change it",
            remedy="leave --target out",
        )
    if file != STANDARD:
        return load_module(file)
    # `load_module` loads files only, so stdin becomes one.
    with private_folder() as folder:
        path = folder / "stdin"
        path.write_bytes(data)
        try:
            return load_module(path)
        except UserError as error:
            error.what = error.what.replace(str(path), name_of(file))
            raise


def make_arguments(
    signature: Signature, given: Mapping[str, Argument], filling: Filling
) -> Arguments:
    """Return all arguments of a call by name, in order: arrays and numbers.

    Args:
        signature: the parameters.
        given: arrays and numbers by name. An array of one element may stand for a number.
        filling: how missing arrays are filled, and the sizes of symbols.

    Raises:
        UserError: an argument is unknown, or has another kind, dtype or shape.
    """
    tensors = [p for p in signature.params if isinstance(p, TensorParam)]
    scalars = {p.name: p for p in signature.params if isinstance(p, ScalarParam)}
    arrays: Arrays = {}
    numbers: dict[str, int | float] = {}
    for name, value in given.items():
        if name in scalars:
            numbers[name] = _number(scalars[name], value)
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            raise _not_a_scalar(name, tensors, list(scalars))
    whole = {name: int(n) for name, n in numbers.items() if scalars[name].dtype.is_int}
    known = chosen_sizes(tensors, filling.symbols, whole)
    add_sizes(known, [GivenArrays(tensors, arrays)])
    made, sizes = complete(tensors, arrays, filling, sizes=known)
    default = 0 if filling.mode == "zeros" else 1
    for name, scalar in scalars.items():
        if name not in numbers:
            # A scalar may be the size of a dimension, which is solved by now.
            numbers[name] = _number(scalar, sizes.get(name, default))
        if scalar.dtype.is_int:
            known.add(name, int(numbers[name]), DEFAULT)
    _check_chosen(signature, known)
    return {
        param.name: made[param.name] if param.name in made else numbers[param.name]
        for param in signature.params
    }


def _not_a_scalar(
    name: str, tensors: Sequence[TensorParam], scalars: Sequence[str]
) -> UserError:
    for param in tensors:
        if param.name == name:
            return UserError(
                f"{name} is not a scalar",
                where=str(param),
                remedy="give it in an .npz file: -i",
            )
    remedy = advise(name, scalars, f"scalars: {', '.join(scalars) or 'none'}")
    return UserError(f"unknown scalar argument {name!r}", remedy=remedy)


def _check_chosen(signature: Signature, sizes: Sizes) -> None:
    """Raise UserError for an entry condition that fails because of a default size.

    The error proposes a size that fulfils the condition.
    """
    for condition in signature.requires:
        if holds(condition, sizes.values):
            continue
        for name in condition.names:
            if sizes.origins[name] != DEFAULT:
                continue
            for size in _EXAMPLES:
                if holds(condition, sizes.values | {name: size}):
                    option = "--symbol" if name in signature.symbols else "--scalar"
                    remedy = f"choose {option} {name}={size}"
                    raise refusal(signature, condition, sizes, remedy)


def _number(param: ScalarParam, value: Argument) -> int | float:
    """Return `value`, a number or an array of one element, as a Python number for the dtype."""
    if isinstance(value, np.ndarray):
        if value.size != 1 or value.dtype.kind not in "biuf":
            raise UserError(
                f"argument {param.name} is an array of shape {value.shape} and dtype "
                f"{value.dtype}, expected one number of {param.dtype}",
                remedy=f"store numpy.array(3), or give --scalar {param.name}=3",
            )
        plain: int | float = value.item()
    else:
        plain = value
    if param.dtype.is_float:
        return plain
    if not math.isfinite(plain) or plain != int(plain):
        raise UserError(
            f"argument {param.name} is {plain}, expected a number of {param.dtype}"
        )
    return bool(plain) if param.dtype.is_bool else int(plain)
