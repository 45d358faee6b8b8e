import re
import subprocess
import sys

import jinja2
import pytest

from refcomp.codegen import spelling
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.errors import CompilerBug
from refcomp.foundation.resources import templates_dir
from refcomp.ir import expr as ir


@pytest.fixture
def templates(tmp_path, monkeypatch):
    """An empty folder of templates for the language `tongue`."""
    monkeypatch.setattr(spelling, "templates_dir", lambda: tmp_path)
    load_spelling.cache_clear()
    yield (tmp_path / "tongue")
    load_spelling.cache_clear()


def test_macros_and_tables_of_all_files(templates):
    templates.mkdir()
    text = "{% macro add(a, b) %}\n  {{ a }} + {{ b }}\n{% endmacro %}\n"
    (templates / "a.j2").write_text(text)
    (templates / "b.toml").write_text('[type]\nf32 = "float"\n')
    loaded = load_spelling("tongue")
    assert loaded.macros.add("x", "y") == "  x + y\n"
    assert loaded.tables["type"]["f32"] == "float"
    assert load_spelling("tongue") is loaded


def test_a_macro_is_compiled_when_asked_for_with_those_it_calls(templates):
    templates.mkdir()
    (templates / "a.j2").write_text(
        "{# A comment. #}\n"
        "{% macro _sign(x) %}-{{ x }}{% endmacro %}\n\n"
        "{%- macro twice(x) -%}\n  {{ _sign(x) }}{{ _sign(x) }}\n{%- endmacro -%}\n"
        "{% macro outer(x) %}{{ twice(x) }}!{% endmacro %}\n"
        "{% macro broken(x) %}{{ x + }}{% endmacro %}\n"
    )
    macros = load_spelling("tongue").macros
    assert macros.outer("a") == "-a-a!"
    assert macros.twice is macros.twice
    with pytest.raises(jinja2.TemplateSyntaxError):
        _ = macros.broken
    for name in ("_sign", "nothing"):
        with pytest.raises(AttributeError, match=f"no template has a macro '{name}'"):
            getattr(macros, name)


@pytest.mark.search
@pytest.mark.parametrize("folder", sorted(p.name for p in templates_dir().iterdir() if p.is_dir()))
def test_every_macro_of_every_language_compiles(folder):
    loaded = load_spelling(folder)
    names = [
        name
        for path in (templates_dir() / folder).glob("*.j2")
        for name in re.findall(r"macro ([a-z]\w*)\(", path.read_text())
    ]
    assert all(callable(getattr(loaded.macros, name)) for name in names)


def test_what_is_spelled_twice_is_refused(templates):
    templates.mkdir()
    for name in ("a.j2", "b.j2"):
        (templates / name).write_text("{% macro add() %}{% endmacro %}")
    with pytest.raises(CompilerBug, match="add is spelled twice"):
        load_spelling("tongue")


def test_a_dialect_replaces_what_it_says_otherwise(templates):
    dialect = templates.with_name("dialect")
    for folder in (templates, dialect):
        folder.mkdir()
    (templates / "a.j2").write_text(
        "{% macro add() %}plus{% endmacro %}{% macro sub() %}minus{% endmacro %}"
    )
    (templates / "a.toml").write_text("[type]\nf32 = 'float'\n[kept]\na = 1\n")
    (dialect / "b.j2").write_text("{% macro sub() %}less{% endmacro %}")
    (dialect / "b.toml").write_text("[type]\nf16 = 'half'\n")
    loaded = load_spelling("tongue", "dialect")
    assert (loaded.language, loaded.macros.add(), loaded.macros.sub()) == (
        "dialect",
        "plus",
        "less",
    )
    assert loaded.tables == {"type": {"f16": "half"}, "kept": {"a": 1}}
    assert load_spelling("tongue").macros.sub() == "minus"


def test_a_name_that_is_not_given_is_an_error(templates):
    templates.mkdir()
    (templates / "a.j2").write_text("{% macro add(a) %}{{ a }}{% endmacro %}")
    with pytest.raises(jinja2.UndefinedError):
        load_spelling("tongue").macros.add()


def test_every_node_with_an_opcode_is_a_node():
    for name in load_spelling("llvm").tables["opcode"]:
        assert issubclass(getattr(ir, name), ir.Expr)


@pytest.mark.tools
def test_the_template_engine_is_imported_on_demand():
    code = "import sys, refcomp.codegen.llvm.module; print('jinja2' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"
