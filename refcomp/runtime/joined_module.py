"""One module of the functions of several modules, which may be for several targets.

Ensures: each function runs where it ran before. Refuses with UserError functions of one name. The
result cannot be saved, since a module file is for one target.
"""

from collections.abc import Sequence

from refcomp.runtime.module import Module


def joined(modules: Sequence[Module]) -> Module:
    """Return a module of all functions of `modules`. The first function is its entry.

    Texts of one language are joined, and the modules of kernels are all imported modules.
    """
    texts: dict[str, list[str]] = {}
    for module in modules:
        for language in module.languages:
            texts.setdefault(language, []).append(module.get_source(language))
    return Module(
        [module[name] for module in modules for name in module.signatures],
        target=", ".join(module.target for module in modules),
        sources={language: "\n".join(parts) for language, parts in texts.items()},
        imported_modules=tuple(
            imported for module in modules for imported in module.imported_modules
        ),
    )
