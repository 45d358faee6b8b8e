"""Prose that must be read twice is found, whatever holds it; plain prose and programs are not."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from check_prose import findings, in_paths

LONG = " ".join(["word"] * 36)


def found(text: str) -> list[tuple[int, str]]:
    return list(findings(text))


@pytest.mark.parametrize("word", ["What", "Whether", "Of", "Those", "Who", "How", "That"])
def test_docstring_must_not_begin_with_a_noun_clause(word: str) -> None:
    assert found(f'def f():\n    """{word} it is."""\n') == [
        (2, f"a docstring begins with {word!r}")
    ]
    assert found(f'def f():\n    """Return it. {word} it is."""\n') == []
    assert found(f"# {word} it is.\n") == []


@pytest.mark.parametrize("word", ["The", "A", "Every", "Makes", "UserError", "`name`", "True"])
def test_function_begins_with_an_imperative(word: str) -> None:
    text = f'def f():\n    """{word} value."""\n'
    assert found(text) == [(2, f"a function's docstring begins {word!r}")]
    assert found(f"@property\n{text}") == []
    assert found(f'class C:\n    """{word} value."""\n') == []
    assert found(text.replace(word, "Express")) == []


@pytest.mark.parametrize("phrase", ["told", "tells", "tell", "is no", "are no", "Told"])
def test_phrases_of_the_private_dialect_are_found_everywhere(phrase: str) -> None:
    assert found(f'"""An error {phrase} axis."""\n') == [(1, f"says {phrase!r}")]
    assert found(f"x = 1\n# An error {phrase} axis.\n") == [(2, f"says {phrase!r}")]
    assert found(f"x = 1  # an error {phrase} axis\n") == [(1, f"says {phrase!r}")]
    message = f'raise Error(\n    f"this {phrase} axis, as {{x}} says"\n)\n'
    assert found(message) == [(2, f"a message says {phrase!r}")]


@pytest.mark.parametrize("phrase", ["is no longer an", "are no more than", "is not an", "foretold"])
def test_plain_english_is_allowed(phrase: str) -> None:
    assert found(f'"""A stage {phrase} axis."""\nx = "a stage {phrase} axis"\n') == []


def test_long_sentence_is_found_with_its_number_of_words() -> None:
    finding = "a sentence of 36 words: word word word word word word ..."
    assert found(f'"""{LONG}."""\n') == [(1, finding)]
    assert found(f'"""Short. W{LONG[1:]}.\nShort."""\n') == [
        (1, finding.replace(": word", ": Word"))
    ]
    halves = LONG.replace("word word word", "word\n# word word")
    assert found(f"# {halves}\n") == [(1, finding)]


@pytest.mark.parametrize(
    "end", [". Word", ": Word", "; Word", "\n\nword", "\n- word", "\n2. word", "\na.py word"]
)
def test_sentence_ends_at_punctuation_paragraphs_and_items(end: str) -> None:
    half = " ".join(["word"] * 20)
    assert found(f'"""{half}{end} {half}."""\n') == []


def test_programs_inside_prose_are_not_read() -> None:
    program = f'"""Read this::\n\n    {LONG}\n    tells told\n\n| is no | {LONG} |\n"""\n'
    assert found(program) == []


def test_finding_has_path_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('"""What it is."""\n')
    (tmp_path / "b.py").write_text('"""A plain sentence."""\n')
    expected = ["a.py:1: a docstring begins with 'What'"]
    assert in_paths([tmp_path], relative_to=tmp_path) == expected
    assert in_paths([tmp_path / "b.py"]) == []
