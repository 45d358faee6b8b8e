"""Symbols from names, from lists and from files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.paths import checked_path
from refcomp.graph.symbol import inference
from refcomp.graph.symbol.attributes import attribute_to_text
from refcomp.graph.symbol.json import MAX_JSON, entries_from_json
from refcomp.graph.symbol.nodes import SymbolEntry, SymbolNode
from refcomp.graph.symbol.symbol import Symbol

INIT_NOTE = "__init__"


def Variable(
    name: str,
    init: str | None = None,
    shape: Sequence[int | str] | None = None,
    dtype: object = None,
    **notes: str,
) -> Symbol:
    """Return a variable: an input or a parameter of a network.

    Args:
        name: the name of the variable.
        init: the name of the initializer of a parameter, such as `zeros`
            (`refcomp.graph.testing.initializers`).
        shape: the shape, if `build` or `infer_shape` is not to be given it.
        dtype: the dtype; None for the dtype of the other inputs of the node that reads it.
        **notes: further attributes as texts, whose names begin and end with `__`.

    Raises:
        UserError: an argument is not as described.

    Source: NNVM, nnvm.symbol.Variable.

    Example::

        >>> w = rc.sym.Variable("w", shape=(2, 3), init="zeros")
        >>> w.list_attr()
        {'__shape__': '(2, 3)', '__init__': 'zeros'}
        >>> w.infer_shape()
        ([(2, 3)], [(2, 3)])
    """
    bare = SymbolNode(checked_name(name, "a variable"))
    if not name:
        raise UserError("a variable cannot be called ''", remedy="give it a name")
    texts = {}
    if shape is not None:
        checked = inference.checked_shape(bare, shape)
        texts[inference.SHAPE_NOTE] = attribute_to_text(checked)
    if dtype is not None:
        texts[inference.DTYPE_NOTE] = to_numpy(
            inference.checked_dtype(bare, dtype)
        ).name
    if init is not None:
        texts[INIT_NOTE] = checked_name(init, "an initializer")
    for key, text in notes.items():
        if not (key.startswith("__") and key.endswith("__") and isinstance(text, str)):
            raise UserError(
                f"the variable {name!r} cannot have the attribute {key}={text!r}",
                remedy="give a text to a name that begins and ends with __",
            )
        texts[key] = text
    return Symbol([SymbolEntry(SymbolNode(name, notes=texts))])


def Group(symbols: Sequence[Symbol]) -> Symbol:
    """Return a symbol with all outputs of other symbols.

    Args:
        symbols: at least one symbol.

    Raises:
        UserError: an item is not a symbol, or there is none.

    Source: NNVM, nnvm.symbol.Group.

    Example::

        >>> x = rc.sym.Variable("x")
        >>> rc.sym.Group([x, rc.sym.exp(x, name="y")]).list_output_names()
        ['x', 'y_output']
    """
    is_list = isinstance(symbols, Sequence) and not isinstance(symbols, str)
    if (
        not is_list
        or not symbols
        or not all(isinstance(one, Symbol) for one in symbols)
    ):
        raise UserError(
            f"{symbols!r} is not a list of symbols",
            remedy="pass a list such as [softmax, features]",
        )
    return Symbol([entry for one in symbols for entry in one.entries])


def load_json(text: str) -> Symbol:
    """Return the symbol that a classic JSON text describes.

    Args:
        text: what `Symbol.json` returned, or a file of NNVM.

    Raises:
        UserError: the text is damaged or too long, or an operator or an attribute is unknown.

    Source: NNVM, nnvm.graph.load_json.

    Example::

        >>> x = rc.sym.Variable("x")
        >>> rc.sym.load_json(rc.sym.tanh(x, name="y").json()).list_output_names()
        ['y_output']
    """
    return Symbol(entries_from_json(text, "the text"))


def load(path: str | os.PathLike[str]) -> Symbol:
    """Return the symbol in a file that `Symbol.save` wrote.

    Args:
        path: the file.

    Raises:
        UserError: the file is missing, too large or damaged.

    Example::

        >>> rc.sym.load("/nowhere.json")
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: the symbol in '/nowhere.json' cannot be read...
    """
    file = Path(checked_path(path, "a symbol"))
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_JSON + 1)
        text = data.decode("utf-8")
    except (OSError, ValueError) as error:
        raise UserError(
            f"the symbol in {str(file)!r} cannot be read",
            why=str(error)[:200],
            remedy="give a file that Symbol.save wrote",
        ) from error
    return Symbol(entries_from_json(text, str(file)))
