"""`refcomp cache`: lists, measures, shrinks and clears the cache on disk."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypedDict

import click

from refcomp.cli.options import NameChoice, errors_and_examples, json_option
from refcomp.cli.outcomes import ILLEGAL
from refcomp.cli.streams import write_json, write_text
from refcomp.foundation.cache import Cache, Freed, StoredEntry, default_cache
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError

_LIST, _SIZE, _PRUNE, _CLEAR = _ACTIONS = ("list", "size", "prune", "clear")
_UNITS = ("bytes", "KiB", "MiB", "GiB")
_MAX_NAMES = 4  # functions of a module that a line names


class EntryReport(TypedDict):
    """An entry of the cache."""

    kind: str  # `module`, `code`, `disassembly`, ...
    origin: str  # the target of a module, or the toolchain of a result
    functions: list[str]  # of a module, perhaps not all
    size: int  # bytes on disk
    last_used: str  # ISO 8601, in UTC


class CacheReport(TypedDict, total=False):
    """The state of the cache, after the action."""

    folder: str
    limit: int  # bytes, of $REFCOMP_CACHE_LIMIT
    size: int  # bytes of all entries
    count: int  # entries
    entries: list[EntryReport]  # the most recently used first; only of `list`
    deleted: int  # entries; only of `prune` and `clear`
    freed: int  # bytes; only of `prune` and `clear`


@click.command(
    "cache",
    epilog=errors_and_examples(
        {ILLEGAL: "another user could change the folder of the cache"},
        "refcomp cache",
        "refcomp cache size --json",
        "refcomp cache prune --limit 100000000",
        "refcomp cache clear",
    ),
)
@click.argument("action", type=NameChoice(_ACTIONS), default=_LIST, metavar="[ACTION]")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="The size that `prune` leaves (default: REFCOMP_CACHE_LIMIT, else 2 GiB).",
)
@json_option
def command(action: str, limit: int | None, as_json: bool) -> None:
    """List or delete what the cache holds.

    The cache holds modules, and results of tools such as machine code, so that a program does not
    build them again. It lies in REFCOMP_CACHE_DIR.

    ACTION is one of these words (default: list):

    \b
    list    list all entries, the most recently used first
    size    print how many entries there are, and their size
    prune   delete the least recently used entries beyond the limit
    clear   delete all entries
    """
    if limit is not None and action != _PRUNE:
        raise UserError(
            f"`refcomp cache {action}` has no limit",
            where=f"--limit {limit}",
            remedy="`refcomp cache prune --limit BYTES` deletes entries beyond a size",
        )
    store = default_cache()
    freed = None
    if action == _CLEAR:
        freed = store.shrink(0)
    elif action == _PRUNE:
        freed = store.shrink(store.limit if limit is None else limit)
    entries = store.entries()
    if as_json:
        write_json(_report(store, entries, action, freed))
        return
    lines = _table(entries) if action == _LIST else []
    if freed is not None:
        lines.append(f"deleted {_counted(*freed)}")
    size = sum(entry.size for entry in entries)
    lines.append(f"{_counted(len(entries), size)} in {store.root}")
    lines.append(f"limit {_size_text(store.limit)}")
    write_text("\n".join(lines) + "\n")


def _report(
    store: Cache, entries: Sequence[StoredEntry], action: str, freed: Freed | None
) -> CacheReport:
    report = CacheReport(
        folder=str(store.root),
        limit=store.limit,
        size=sum(entry.size for entry in entries),
        count=len(entries),
    )
    if action == _LIST:
        report["entries"] = [_entry_report(entry) for entry in entries]
    if freed is not None:
        report["deleted"] = freed.entries
        report["freed"] = freed.size
    return report


def _entry_report(entry: StoredEntry) -> EntryReport:
    return EntryReport(
        kind=entry.label.kind,
        origin=entry.label.origin,
        functions=list(entry.label.names),
        size=entry.size,
        last_used=_time_text(entry),
    )


def _table(entries: Sequence[StoredEntry]) -> list[str]:
    """Return a line for each entry, and one for the names of the columns."""
    if not entries:
        return []
    rows = [("last used", "size", "kind", "of")]
    for entry in entries:
        names = entry.label.names
        shown = ", ".join(names[:_MAX_NAMES])
        more = ", ..." if len(names) > _MAX_NAMES else ""
        what = f"{entry.label.origin}: {shown}{more}" if names else entry.label.origin
        size = _size_text(entry.size)
        rows.append((_time_text(entry), size, entry.label.kind, what))
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    return [
        f"{when:{widths[0]}}  {size:>{widths[1]}}  {kind:{widths[2]}}  {what}".rstrip()
        for when, size, kind, what in rows
    ]


def _time_text(entry: StoredEntry) -> str:
    return datetime.fromtimestamp(int(entry.used), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _counted(count: int, size: int) -> str:
    return f"{counted(count, 'entry', 'entries')}, {_size_text(size)}"


def _size_text(size: int) -> str:
    """Return a number of bytes with a unit that keeps it below 1024: `3.1 MiB`."""
    number = float(size)
    for unit in _UNITS[:-1]:
        if number < 1024:
            return f"{size} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} {_UNITS[-1]}"
