"""Where the data folders lie: templates/ (spelling of the output) and toolchains/ (tools).

A wheel carries them inside the package, a checkout beside it. Ensures: the folder that is
returned exists. Refuses with UserError when an installation has neither.
"""

from pathlib import Path

from refcomp.foundation.errors import UserError

_PACKAGE = Path(__file__).resolve().parents[1]


def _data_dir(name: str, package: Path) -> Path:
    places = (package / name, package.parent / name)
    for place in places:
        if place.is_dir():
            return place
    raise UserError(
        f"this installation of refcomp has no {name} folder",
        where=" or ".join(map(str, places)),
        why="refcomp reads its data from there; a wheel carries it, a checkout has it at the top",
        remedy="install refcomp again, from a complete checkout or wheel",
    )


def templates_dir() -> Path:
    """The folder with one sub-folder of templates per output language."""
    return _data_dir("templates", _PACKAGE)


def toolchains_dir() -> Path:
    """The folder with one TOML file per toolchain."""
    return _data_dir("toolchains", _PACKAGE)
