"""The data folders of an installation: templates/ (text of the output), toolchains/ (tools).

A wheel has them inside of the package, a checkout beside it. Ensures: a returned folder exists.
Raises UserError if an installation lacks the folder.
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
        why="a wheel has the folder in the package, a checkout at its top level",
        remedy="install refcomp again, from a complete checkout or wheel",
    )


def templates_dir() -> Path:
    """Return the folder that has a folder of templates for each output language."""
    return _data_dir("templates", _PACKAGE)


def toolchains_dir() -> Path:
    """Return the folder that has a TOML file for each toolchain."""
    return _data_dir("toolchains", _PACKAGE)
