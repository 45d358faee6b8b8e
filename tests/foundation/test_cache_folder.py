"""A folder is taken for the cache only where no other user can choose what lies in it."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from refcomp.foundation import cache_folder
from refcomp.foundation.cache_folder import find_safe_folder, make_private
from refcomp.foundation.errors import UserError

STRANGER = 54321
# No group has this number, so it is nobody's private one.
STRANGE_GROUP = 54322


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "above" / "store"
    made.mkdir(parents=True, mode=0o700)
    made.parent.chmod(0o755)
    return made


def give_away(path: Path, uid: int = STRANGER, gid: int = -1) -> None:
    """Let `path`, or the link there, belong to another user, as only root can."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(path, uid, gid, follow_symlinks=False)


def refusal(path: Path) -> UserError:
    with pytest.raises(UserError, match="is not a safe folder for the cache") as caught:
        find_safe_folder(str(path))
    assert caught.value.what == f"{path} is not a safe folder for the cache"
    return caught.value


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500, 0o1700])
def test_own_folder_is_safe(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert find_safe_folder(str(folder)) == os.path.realpath(folder)


def test_folder_of_another_user_is_refused(folder: Path) -> None:
    give_away(folder)
    assert str(refusal(folder)) == (
        f"{folder} is not a safe folder for the cache\n"
        f"  why: {folder} belongs to the user with the number {STRANGER}, and refcomp runs machine "
        "code from the cache\n"
        "  what to do: set REFCOMP_CACHE_DIR to a folder of your own"
    )


def test_owner_is_called_by_name(folder: Path) -> None:
    give_away(folder, uid=1)
    assert f"{folder} belongs to the user daemon" in str(refusal(folder).why)


def test_folder_of_root_is_refused_for_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_away(folder, uid=0)
    monkeypatch.setattr(cache_folder.os, "geteuid", lambda: STRANGER)
    assert "belongs to the user root" in str(refusal(folder).why)


@pytest.mark.parametrize("mode", [0o777, 0o702, 0o1777])
def test_folder_that_all_may_write_to_is_refused(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    error = refusal(folder)
    text = stat.filemode(mode | stat.S_IFDIR)
    assert str(error.why).startswith(f"other users may write to {folder} ({text}),")
    assert str(error.remedy).startswith("delete it, since its files may come from them; or set")


def test_folder_that_a_group_may_write_to_is_refused(folder: Path) -> None:
    give_away(folder, uid=-1, gid=STRANGE_GROUP)
    folder.chmod(0o770)
    assert "other users may write to" in str(refusal(folder).why)


@pytest.mark.parametrize(
    ("name", "gid", "members", "is_safe"),
    [
        ("me", 7, [], True),
        ("me", 7, ["me"], True),
        ("me", 7, ["me", "you"], False),
        ("staff", 7, [], False),
        ("me", 8, [], False),
    ],
)
def test_private_group_of_the_owner_may_write(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    gid: int,
    members: list[str],
    is_safe: bool,
) -> None:
    """As distributions make it, whose users have a group of their own and the mask 002."""
    folder.chmod(0o775)
    user = SimpleNamespace(pw_name="me", pw_gid=7)
    group = SimpleNamespace(gr_name=name, gr_gid=gid, gr_mem=members)
    monkeypatch.setattr(cache_folder.pwd, "getpwuid", lambda uid: user)
    monkeypatch.setattr(cache_folder.grp, "getgrgid", lambda gid: group)
    if is_safe:
        assert find_safe_folder(str(folder))
    else:
        refusal(folder)


# ---- what leads to it ------------------------------------------------------------------------


def test_parent_of_another_user_is_refused(folder: Path) -> None:
    give_away(folder.parent)
    assert f"{folder.parent} belongs to the user with the num" in str(refusal(folder).why)


def test_parent_of_root_is_safe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away(folder)
    monkeypatch.setattr(cache_folder.os, "geteuid", lambda: STRANGER)
    assert find_safe_folder(str(folder))


def test_parent_that_all_may_write_to_is_refused(folder: Path) -> None:
    folder.parent.chmod(0o777)
    error = refusal(folder)
    assert str(error.why).startswith(f"other users may rename the entries of {folder.parent} (drwx")
    assert str(error.remedy).startswith(f"chmod go-w {folder.parent}; or set REFCOMP_CACHE_DIR")


def test_parent_is_refused_before_anything_is_made_in_it(folder: Path) -> None:
    folder.parent.chmod(0o777)
    refusal(folder / "missing")


def test_sticky_parent_is_safe(folder: Path) -> None:
    folder.parent.chmod(0o1777)
    assert find_safe_folder(str(folder))


def test_own_link_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "relative").symlink_to("above")
    (tmp_path / "absolute").symlink_to(tmp_path / "relative" / ".." / "above" / "store")
    assert find_safe_folder(str(tmp_path / "absolute")) == os.path.realpath(folder)
    assert find_safe_folder(str(tmp_path / "relative" / "store")) == os.path.realpath(folder)


def test_link_of_another_user_is_refused(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    give_away(link)
    assert f"{link} belongs to" in str(refusal(link).why)


def test_link_into_an_open_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    folder.parent.chmod(0o777)
    assert f"rename the entries of {folder.parent}" in str(refusal(link).why)
    folder.parent.chmod(0o755)
    folder.chmod(0o777)
    assert f"write to {folder}" in str(refusal(link).why)


def test_links_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert find_safe_folder(str(tmp_path / "a")) is None


@pytest.mark.parametrize("place", ["missing", "missing/below", "file", "file/below", "dangling"])
def test_what_cannot_be_reached_is_nothing(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    assert find_safe_folder(str(tmp_path / place)) is None
    assert find_safe_folder("/dev/null/refcomp") is None


@pytest.mark.parametrize(
    ("uid_map", "has_all"),
    [
        ("         0          0 4294967295\n", True),
        ("         0       1000          1\n", False),
        ("0 1000 1\n1 100000 65536\n", False),
    ],
)
def test_user_namespace_without_all_users_is_found(uid_map: str, has_all: bool) -> None:
    assert cache_folder._has_all_users(uid_map) == has_all


# ---- made ------------------------------------------------------------------------------------


def test_all_missing_folders_are_made_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        make_private(str(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(old)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 3
    make_private(str(made[-1]))


def test_a_folder_that_another_process_made_meanwhile_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.mkdir

    def make_twice(path: str, mode: int) -> None:
        make(path, mode)
        make(path, mode)

    monkeypatch.setattr(cache_folder.os, "mkdir", make_twice)
    make_private(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
