#!/usr/bin/env python3
"""Find prose that has to be read twice: in docstrings, comments and messages of Python files.

`check_prose.py [PATH ...]` prints each finding of these files and folders (default: refcomp) as
`path:line: what`. Exit code: 1 when there are findings.

A docstring must begin with a verb or a noun phrase, not with one of `FIRST_WORDS`. A function's
must begin with an imperative. No text holds one of `PHRASES`, and no sentence of a docstring or
comment has more than `MAX_WORDS` words.
"""

import ast
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path

MAX_WORDS = 35
FIRST_WORDS = re.compile(r"(What|Whether|Of|Those|Who|Whose|How|That|Which)\b")
# A function's docstring begins with an imperative; only that of a property may be a noun phrase.
NOT_IMPERATIVE = re.compile(
    r"`|(An?|The|Its|As|At|In|If|When|Every|Each|All|Any|Both|No|None|One|True|\w+Error)\b"
    r"|[A-Z][a-z]+(?<!s)s\b"
)
PHRASES = re.compile(
    r"\b(?i:tells?|told|(?:is|are|was|were|be) no(?! (?:longer|more|less|later)))\b"
)
# Programs, tables and signatures inside of prose: indented text, fences, rows, doctests.
CODE = re.compile(r"( {4}|```|\||>>>|\.\.\. )")
# Where a sentence ends: before a capital, at an empty line, or where an item of a list begins.
SENTENCE_END = re.compile(
    r"(?<=[.!?;:])\s+(?=[`\"'(*]*[A-Z0-9])|\n\s*\n|\n\s*(?:[-*]|\d+\.|\w+:|\S+(?:\.py|/)) "
)
MESSAGE = re.compile(r"[A-Za-z]+,? [a-z]+,? [a-z]+")  # a string that reads as a sentence


def findings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the description of each finding in the text of one Python file."""
    tree = ast.parse(text)
    docstrings = dict(docstrings_of(tree))
    for line, prose in sorted([*docstrings.items(), *comments_of(text)]):
        if line in docstrings and (first := FIRST_WORDS.match(prose)):
            yield line, f"a docstring begins with {first[0]!r}"
        yield from ((line, what) for what in in_prose(prose))
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() if not any(
                "property" in ast.unparse(d) for d in node.decorator_list
            ):
                prose = ast.get_docstring(node) or ""
                if NOT_IMPERATIVE.match(prose):
                    yield node.body[0].lineno, f"a function's docstring begins {prose.split()[0]!r}"
            case ast.Constant(str(message)) if node.lineno not in docstrings:
                if MESSAGE.search(message) and (found := PHRASES.search(message)):
                    yield node.lineno, f"a message says {found[0]!r}"


def in_prose(prose: str) -> Iterator[str]:
    """Yield the description of each finding in `prose`, whose programs are left out."""
    lines = textwrap.dedent(prose).splitlines()
    prose = "\n".join(line for line in lines if not CODE.match(line))
    yield from (f"says {found[0]!r}" for found in PHRASES.finditer(prose))
    for sentence in SENTENCE_END.split(prose):
        if len(words := sentence.split()) > MAX_WORDS:
            yield f"a sentence of {len(words)} words: {' '.join(words[:6])} ..."


def docstrings_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each docstring."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str(prose))):
                first, _, rest = prose.partition("\n")
                yield node.lineno, f"{first.strip()}\n{textwrap.dedent(rest)}"


def comments_of(text: str) -> list[tuple[int, str]]:
    """Return the first line and the text of each block of comments and of each trailing one."""
    blocks: list[tuple[int, str]] = []
    end = 0  # line of the last comment if it stands alone in its line
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        prose = token.string.lstrip("# ")
        alone = not token.line[: token.start[1]].strip()
        if alone and blocks and end == token.start[0] - 1:
            line, before = blocks.pop()
            blocks.append((line, f"{before}\n{prose}"))
        else:
            blocks.append((token.start[0], prose))
        end = token.start[0] if alone else -1
    return blocks


def in_paths(paths: list[Path], relative_to: Path | None = None) -> list[str]:
    """Return the findings of all Python files in `paths` as `path:line: what`."""
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    return [
        f"{file.relative_to(relative_to) if relative_to else file}:{line}: {what}"
        for file in sorted(files)
        for line, what in findings(file.read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    found = in_paths([Path(path) for path in sys.argv[1:] or ["refcomp"]])
    print("\n".join([*found, f"prose: {len(found)} findings"]))
    sys.exit(bool(found))
