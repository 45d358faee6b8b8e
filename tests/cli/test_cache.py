"""`refcomp cache` lists what is stored, and deletes the least recently used entries first."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import refcomp
from refcomp.driver import build_cache
from refcomp.foundation.cache import DEFAULT_LIMIT, Cache, Label, default_cache

Cli = Callable[..., Result]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """Three entries, of which `old` was used first and `module` last."""
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("REFCOMP_CACHE_LIMIT", raising=False)
    cache = default_cache()
    labels = {
        "old": Label("code", "llvm"),
        "middle": Label("version", "/usr/bin/llc"),
        "module": Label("module", "llvm -mcpu=native", tuple("abcdef")),
    }
    for time, (name, label) in enumerate(labels.items()):
        cache.put(Cache.key(name), bytes(1000 * (time + 1)), label)
        (path,) = cache.root.glob(f"entries/*/{Cache.key(name)}")
        os.utime(path, (86_400 * time, 86_400 * time))
    return cache


def test_entries_are_listed_the_most_recent_first(cli: Cli, store: Cache) -> None:
    result = cli("cache")
    assert (result.exit_code, result.stderr) == (0, "")
    head, module, middle, old, total, limit = result.stdout.splitlines()
    assert head.split() == ["last", "used", "size", "kind", "of"]
    assert module.startswith("1970-01-03T00:00:00Z  3.0 KiB  module   llvm -mcpu=native: a, b, c")
    assert module.endswith("c, d, ...")
    assert middle.endswith("version  /usr/bin/llc") and old.endswith("code     llvm")
    assert total.startswith("3 entries, 6.1 KiB in ") and total.endswith(str(store.root))
    assert limit == "limit 2.0 GiB"


def test_the_list_as_json(cli: Cli, store: Cache) -> None:
    report = json.loads(cli("cache", "list", "--json").stdout)
    assert report["folder"] == str(store.root) and report["limit"] == DEFAULT_LIMIT
    assert report["count"] == 3 and report["size"] == sum(e["size"] for e in report["entries"])
    assert report["entries"][0] == {
        "kind": "module",
        "origin": "llvm -mcpu=native",
        "functions": list("abcdef"),
        "size": report["entries"][0]["size"],
        "last_used": "1970-01-03T00:00:00Z",
    }


def test_the_size(cli: Cli, store: Cache) -> None:
    result = cli("cache", "size")
    assert result.stdout.startswith("3 entries, 6.1 KiB in ")
    report = json.loads(cli("cache", "size", "--json").stdout)
    assert set(report) == {"folder", "limit", "size", "count"}


def test_prune_deletes_the_least_recently_used(cli: Cli, store: Cache) -> None:
    result = cli("cache", "prune", "--limit", "4000")
    assert result.stdout.startswith("deleted 2 entries, 3.1 KiB\n1 entry, 3.0 KiB in ")
    assert store.get(Cache.key("module")) == bytes(3000)
    report = json.loads(cli("cache", "prune", "--limit", "0", "--json").stdout)
    assert (report["deleted"], report["count"], report["size"]) == (1, 0, 0)


def test_prune_keeps_what_is_within_the_limit(
    cli: Cli, store: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("cache", "prune").stdout.startswith("deleted 0 entries, 0 bytes\n3 entries")
    monkeypatch.setenv("REFCOMP_CACHE_LIMIT", "5500")
    assert cli("cache", "prune").stdout.startswith("deleted 1 entry, 1.0 KiB\n2 entries")


def test_clear_deletes_all(cli: Cli, store: Cache) -> None:
    assert cli("cache", "clear").stdout.startswith("deleted 3 entries, 6.1 KiB\n0 entries, 0 bytes")
    assert cli("cache").stdout.startswith("0 entries, 0 bytes in ")


def test_a_cache_that_is_not_there_is_empty(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "nowhere"))
    for action in ("list", "size", "prune", "clear"):
        result = cli("cache", action)
        assert result.exit_code == 0 and "0 entries, 0 bytes in " in result.stdout
    assert not (tmp_path / "nowhere").exists()


def test_a_limit_is_for_prune(cli: Cli, store: Cache) -> None:
    result = cli("cache", "clear", "--limit", "5")
    assert result.exit_code == 4
    assert "`refcomp cache clear` has no limit" in result.stderr
    assert "refcomp cache prune --limit BYTES" in result.stderr
    assert len(store.entries()) == 3


def test_an_action_that_is_almost_known(cli: Cli, store: Cache) -> None:
    result = cli("cache", "clean")
    assert result.exit_code == 2 and "did you mean clear?" in result.stderr


def test_a_folder_that_another_user_could_change_is_refused(cli: Cli, store: Cache) -> None:
    store.root.chmod(0o777)
    result = cli("cache")
    assert result.exit_code == 4 and "REFCOMP_CACHE_DIR" in result.stderr


@pytest.mark.llvm
def test_what_a_build_keeps_is_listed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("REFCOMP_BUILD_CACHE", "1")
    monkeypatch.setattr(build_cache, "own_version", lambda: "this version")
    monkeypatch.setattr(build_cache, "is_own_version_current", lambda: True)
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B")
    refcomp.build(refcomp.create_schedule(b), [a, b], name="increment")
    entries = json.loads(cli("cache", "--json").stdout)["entries"]
    modules = [entry for entry in entries if entry["kind"] == "module"]
    assert [(one["origin"], one["functions"]) for one in modules] == [("llvm", ["increment"])]
    kinds = {entry["kind"] for entry in entries}
    assert kinds >= {"module", "code", "tools", "version", "processor", "latest result"}
