"""Keep several texts of the user's own LLVM IR apart, as if each stood in a file of its own.

    static int n;  in two texts    ->    @n.text1 and @n.text2

Requires texts that LLVM or clang printed: each definition begins a line. Ensures: the texts have
as many lines as before, so that messages name the right line. A single text stays as it is.

- A name that only its own text can see gets a suffix if another text has it, too. So does the name
  of a type. A call therefore finds the function of its own text.
- A variable that several texts declare as external is declared once.
- The lists of constructors, and of what the linker must keep, are joined.
- Module flags are those of the first text that has any.

Refuses (UserError) a variable that two texts define, and that all others can see.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from refcomp.foundation.errors import UserError

# Names may be inside of strings and comments, which stay.
_NAME = re.compile(r'"[^"]*"|;.*|([@%$])([-\w.$]+)')
_VARIABLE = re.compile(r"@(?P<name>[-\w.$]+)\s*=\s*(?P<words>.*)$")
_FUNCTION = re.compile(r"define\s+(?P<words>[^@]*)@(?P<name>[-\w.$]+)\(")
_TYPE = re.compile(r"%(?P<name>[-\w.$]+)\s*=\s*type\b")
_FLAGS = re.compile(r"!llvm\.(?P<name>module\.flags|ident)\s*=")
_LIST = re.compile(
    r"@(?P<name>llvm\.(?:global_ctors|global_dtors|used|compiler\.used))\s*=\s*appending global "
    r"\[(?P<count>\d+) x (?P<type>[^]]*)\] (?:\[(?P<items>.*)\]|zeroinitializer)(?P<rest>[^]]*)$"
)
_OWN = ("private", "internal")
_EXTERNAL = ("external", "extern_weak")


def separate(texts: Sequence[str]) -> list[str]:
    """Return the texts with names that do not clash.

    Raises:
        UserError: two texts define a variable that all others can see.

    Example::

        >>> from refcomp.codegen.llvm.separate_imports import separate
        >>> print(*separate(["@n = internal global i32 1", "@n = internal global i32 2"]), sep="; ")
        @n.text1 = internal global i32 1; @n.text2 = internal global i32 2
    """
    if len(texts) < 2:
        return list(texts)
    seen = Counter(name for text in texts for name in _defined(text))
    visible = _visible_variables(texts)
    renamed: list[list[str]] = []
    for place, text in enumerate(texts, 1):
        own = {name for name, is_own in _defined(text).items() if is_own}
        clashing = {name for name in own if seen[name] > 1}
        lines = [_renamed(line, clashing, place) for line in text.splitlines()]
        renamed.append([_declared_once(line, visible) for line in lines])
    _keep_first_flags(renamed)
    _join_lists(renamed)
    return ["\n".join(lines) + "\n" for lines in renamed]


def _defined(text: str) -> dict[str, bool]:
    """Return the names that a text defines -> True if only this text can see them.

    A name is `@name` of a function or variable, or `%name` of a type.
    """
    found: dict[str, bool] = {}
    for line in text.splitlines():
        if match := _TYPE.match(line):
            found[f"%{match['name']}"] = True
        elif match := _VARIABLE.match(line) or _FUNCTION.match(line):
            words = match["words"].split()
            is_list = match["name"].startswith("llvm.")
            if not is_list and not any(word in words for word in _EXTERNAL):
                found[f"@{match['name']}"] = any(word in _OWN for word in words[:1])
    return found


def _visible_variables(texts: Sequence[str]) -> set[str]:
    """Return the variables that one text defines for all others."""
    found: set[str] = set()
    for text in texts:
        for line in text.splitlines():
            match = _VARIABLE.match(line)
            if match is None or match["name"].startswith("llvm."):
                continue
            words = match["words"].split()
            if any(word in (*_OWN, *_EXTERNAL) for word in words[:1]):
                continue
            if match["name"] in found:
                raise UserError(
                    f"two imported texts define the variable {match['name']}",
                    why="each of them lets the others see it",
                    remedy="make it static, or declare it in one of them: extern",
                )
            found.add(match["name"])
    return found


def _renamed(line: str, clashing: set[str], place: int) -> str:
    def rename(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        # A comdat has the name of the function that it is for.
        sigil = "@" if match[1] == "$" else match[1]
        is_clashing = f"{sigil}{match[2]}" in clashing
        return f"{match[0]}.text{place}" if is_clashing else match[0]

    return _NAME.sub(rename, line)


def _declared_once(line: str, visible: set[str]) -> str:
    match = _VARIABLE.match(line)
    if match is None or match["words"].split()[0] not in _EXTERNAL:
        return line
    if match["name"] not in visible:
        visible.add(match["name"])
        return line
    return f"; {line}"


def _keep_first_flags(texts: list[list[str]]) -> None:
    """Comment out the module flags of all texts except for the first that has any.

    LLVM refuses a module that has two lists of flags.
    """
    kept: dict[str, int] = {}
    for place, lines in enumerate(texts):
        for number, line in enumerate(lines):
            match = _FLAGS.match(line)
            if match is not None and kept.setdefault(match["name"], place) != place:
                lines[number] = f"; {line}"


def _join_lists(texts: list[list[str]]) -> None:
    """Move the items of lists such as @llvm.used to the first list of that name.

    The other lists are commented out.
    """
    first: dict[str, tuple[list[str], int]] = {}
    items: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    for lines in texts:
        for number, line in enumerate(lines):
            match = _LIST.match(line)
            if match is None:
                continue
            name = match["name"]
            counts[name] += int(match["count"])
            items.setdefault(name, []).extend(
                [match["items"]] if match["items"] else []
            )
            if name in first:
                lines[number] = f"; {line}"
            first.setdefault(name, (lines, number))
    for name, (lines, number) in first.items():
        match = _LIST.match(lines[number])
        assert match is not None
        value = f"[{', '.join(items[name])}]" if items[name] else "zeroinitializer"
        type_ = f"[{counts[name]} x {match['type']}]"
        lines[number] = f"@{name} = appending global {type_} {value}{match['rest']}"
