"""The folder of the cache, which is refused if another user could change its contents.

The cache holds machine code that is run without another check. So the folder must belong to this
user, and only this user may write to it. The folders and links that lead to it must belong to this
user or to root, and no other user may rename their entries. OpenSSH checks `authorized_keys` by
the same rules.

A folder that a group may write to is safe if the group is its owner's private group. Such a group
has the owner's name, and no other member.
"""

import grp
import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from refcomp.foundation.errors import UserError

_MAX_LINKS = 40  # the limit of Linux: path_resolution(7)
_ROOT_UID = 0
_ALL_UIDS = 2**32 - 1
_ADVICE = "set REFCOMP_CACHE_DIR to a folder of your own"


class _Step(NamedTuple):
    """A folder, link or file on the way to the cache."""

    place: str  # its path
    status: os.stat_result
    link: str | None  # the target, if it is a link


def find_safe_folder(path: str) -> str | None:
    """Return the real path of the folder `path`; None if it is missing or not a folder.

    Raises UserError if another user could change its contents.
    """
    path = os.path.abspath(path)
    steps, is_there = _walk(path)
    owners = _trusted_owners()
    for step in steps[:-1] if is_there else steps:
        _check_way(path, step, owners)
    if not is_there or not stat.S_ISDIR(steps[-1].status.st_mode):
        return None
    _check_folder(path, steps[-1])
    return steps[-1].place


def make_private(folder: str) -> None:
    """Make `folder` and its missing parents, for this user only. OSError."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for name in reversed(missing):
        # Another process may make it at the same time.
        with suppress(FileExistsError):
            os.mkdir(name, 0o700)


def _walk(path: str) -> tuple[list[_Step], bool]:
    """Return the steps to `path`, which is the last one, and True if it can be reached.

    Resolves links one by one, as the kernel does, since each link must be checked too.
    """
    steps: list[_Step] = []
    place = "/"
    links = 0
    pending = path.split("/")[::-1]
    while pending:
        name = pending.pop()
        if name in ("", ".", ".."):
            place = os.path.dirname(place) if name == ".." else place
            continue
        entry = os.path.join(place, name)
        try:
            status = os.lstat(entry)
            link = os.readlink(entry) if stat.S_ISLNK(status.st_mode) else None
        except OSError:
            return steps, False
        step = _Step(entry, status, link)
        steps.append(step)
        if step.link is None:
            place = step.place
            continue
        links += 1
        if links > _MAX_LINKS:
            return steps, False
        place = "/" if step.link.startswith("/") else place
        pending += step.link.split("/")[::-1]
    return steps, bool(steps)


def _check_way(path: str, step: _Step, owners: frozenset[int]) -> None:
    """Raise UserError if another user may replace `step`, which leads to `path`."""
    is_folder = stat.S_ISDIR(step.status.st_mode)
    if not is_folder and step.link is None:
        return
    if step.status.st_uid not in owners:
        raise _foreign(path, step)
    # In a sticky folder, such as /tmp, only an entry's owner may rename the entry.
    if is_folder and _is_open(step.status) and not step.status.st_mode & stat.S_ISVTX:
        mode = stat.filemode(step.status.st_mode)
        raise _refusal(
            path,
            f"other users may rename the entries of {step.place} ({mode})",
            f"chmod go-w {step.place}; or {_ADVICE}",
        )


def _check_folder(path: str, step: _Step) -> None:
    if step.status.st_uid != os.geteuid():
        raise _foreign(path, step)
    if _is_open(step.status):
        raise _refusal(
            path,
            f"other users may write to {step.place} ({stat.filemode(step.status.st_mode)})",
            f"delete it, since its files may come from them; or {_ADVICE}",
        )


def _is_open(status: os.stat_result) -> bool:
    """Return True if users other than the owner may write to the folder."""
    if status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    try:
        owner = pwd.getpwuid(status.st_uid)
        group = grp.getgrgid(status.st_gid)
    except KeyError:
        return True
    has_name_of_owner = owner.pw_name == group.gr_name and owner.pw_gid == group.gr_gid
    is_private = has_name_of_owner and {owner.pw_name}.issuperset(group.gr_mem)
    return not is_private


def _trusted_owners() -> frozenset[int]:
    owners = {_ROOT_UID, os.geteuid()}
    with suppress(OSError):
        if not _has_all_users(Path("/proc/self/uid_map").read_text()):
            # In a user namespace that lacks users, the machine's root has this number.
            owners.add(int(Path("/proc/sys/kernel/overflowuid").read_text()))
    return frozenset(owners)


def _has_all_users(uid_map: str) -> bool:
    # Each line: first number inside, first number outside, count; see user_namespaces(7).
    return sum(int(line.split()[2]) for line in uid_map.splitlines()) >= _ALL_UIDS


def _foreign(path: str, step: _Step) -> UserError:
    uid = step.status.st_uid
    try:
        owner = f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        owner = f"the user with the number {uid}"
    return _refusal(path, f"{step.place} belongs to {owner}", _ADVICE)


def _refusal(path: str, why: str, remedy: str) -> UserError:
    return UserError(
        f"{path} is not a safe folder for the cache",
        why=f"{why}, and refcomp runs machine code from the cache",
        remedy=remedy,
    )
