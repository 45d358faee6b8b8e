"""The error for a damaged module file."""

from refcomp.foundation.errors import UserError


def damaged(path: str, why: str) -> UserError:
    """Return the error for a damaged module file."""
    return UserError(
        f"{path} is damaged", why=why, remedy="copy it again, or save the module again"
    )
