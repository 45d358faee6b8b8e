"""One module of the functions of several modules, which may be for several targets.

Ensures: each function runs where it ran before. Refuses with UserError functions of one name. The
result cannot be saved as a module file, which is for one target. A text that only one of them has
can be saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from refcomp.runtime.files.manifest import JoinedContents
from refcomp.runtime.module import Module

if TYPE_CHECKING:
    from refcomp.runtime.files.suffixes import Contents


def joined(modules: Sequence[Module], contents: Contents | None = None) -> Module:
    """Return a module of all functions of `modules`. The first function is its entry.

    Texts of one language are joined, and the modules of kernels are all imported modules.

    Args:
        modules: at least one.
        contents: what a file of the result holds; None for the texts of all parts.
    """
    texts: dict[str, list[str]] = {}
    for module in modules:
        for language in module.languages:
            texts.setdefault(language, []).append(module.get_source(language))
    return Module(
        [module[name] for module in modules for name in module.signatures],
        target=", ".join(dict.fromkeys(module.target for module in modules)),
        sources={language: "\n".join(parts) for language, parts in texts.items()},
        imported_modules=tuple(
            imported for module in modules for imported in module.imported_modules
        ),
        contents=contents
        or JoinedContents(
            tuple((module.target, _texts_of(module)) for module in modules)
        ),
    )


def _texts_of(module: Module) -> dict[str, str]:
    """Return the texts of a module and of its kernels: language -> text."""
    texts = {language: module.get_source(language) for language in module.languages}
    for kernels in module.imported_modules:
        texts |= {name: kernels.get_source(name) for name in kernels.languages}
    return texts
