"""`tvm.target.cuda` and its like: targets by the names of their functions.

The models of the classic functions chose tuned schedules. refcomp has none, and ignores them.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.target import Target, as_target

Options = str | Sequence[str] | None


def cuda(model: str = "unknown", options: Options = None) -> Target:
    """Return the target `cuda`, for NVIDIA GPUs.

    Args:
        model: accepted, and ignored.
        options: options of the target, as a text or a list, such as `"-arch=sm_80"`.

    Raises:
        UserError: the target has no such option.

    Example::

        >>> str(rc.classic.target.cuda()), str(rc.classic.target.cuda("v100", "-arch=sm_70"))
        ('cuda', 'cuda -arch=sm_70')
    """
    return _target("cuda", options)


def rocm(model: str = "unknown", options: Options = None) -> Target:
    """Return the target `rocm`, for AMD GPUs.

    Args:
        model: accepted, and ignored.
        options: options of the target, as a text or a list, such as `"-mcpu=gfx942"`.

    Raises:
        UserError: the target has no such option.

    Example::

        >>> str(rc.classic.target.rocm(options=["-mcpu=gfx942"]))
        'rocm -mcpu=gfx942'
    """
    return _target("rocm", options)


def mali(model: str = "unknown", options: Options = None) -> Target:
    """Return the target `opencl`, which GPUs of ARM run.

    Args:
        model: accepted, and ignored.
        options: options of the target, as a text or a list.

    Raises:
        UserError: the target has no such option.

    Example::

        >>> str(rc.classic.target.mali())
        'opencl'
    """
    return _target("opencl", options)


def bifrost(model: str = "unknown", options: Options = None) -> Target:
    """Return the target `opencl`, like `mali`.

    Args:
        model: accepted, and ignored.
        options: options of the target, as a text or a list.

    Example::

        >>> str(rc.classic.target.bifrost())
        'opencl'
    """
    return _target("opencl", options)


def intel_graphics(model: str = "unknown", options: Options = None) -> Target:
    """Return the target `opencl`, which GPUs of Intel run.

    Args:
        model: accepted, and ignored.
        options: options of the target, as a text or a list.

    Raises:
        UserError: the target has no such option.

    Example::

        >>> str(rc.classic.target.intel_graphics(options="-threads=64"))
        'opencl -threads=64'
    """
    return _target("opencl", options)


def _target(kind: str, options: Options) -> Target:
    words = [options] if isinstance(options, str) else list(options or ())
    return as_target(" ".join([kind, *words]))
