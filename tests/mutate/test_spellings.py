"""Each kind of edit on a line, and an edited spelling: in a child, and in no file."""

import pytest

from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.resources import templates_dir
from refcomp.mutate.child import run_in_child
from refcomp.mutate.spellings import replacements, spelling_edits, table_edits


def _made(line):
    return [(kind, line[:a] + other + line[b:]) for kind, a, b, other in replacements(line)]


@pytest.mark.parametrize(
    ("line", "kind", "changed"),
    [
        ("  {{ r }} = ashr {{ t }} {{ a }}, {{ b }}", "operator flipped", "lshr"),
        ("  {{ r }} = icmp slt i32 {{ a }}, 0", "comparison off by one", "icmp sle"),
        ("  {{ r }} = sub {{ t }} {{ a }}, {{ b }}", "operands exchanged", "{{ b }}, {{ a }}"),
        ("  x = select i1 c, {{ t }} a, {{ t }} b", "operands exchanged", "{{ t }} b, {{ t }} a"),
        ("  br i1 {{ c }}, label %a, label %b", "branches exchanged", "label %b, label %a"),
        ("  br i1 {{ c }}, label %a, label %b", "condition dropped", "br i1 true, label %a"),
        ("  store i32 1, ptr %s, align 4", "line dropped", ""),
        ("  store i32 1, ptr %s, align 4", "number shifted", "store i32 2"),
        ("if ({{ c }}) {", "condition dropped", "if (true || {{ c }})"),
        ("  if (b == 0) return 0;", "line dropped", ""),
        ("  if (b == 0) return 0;", "operator flipped", "b != 0"),
        ("  return a < b ? a : b;", "branches exchanged", "? b : a"),
        ("barrier(LOCAL);", "line dropped", ""),
        ("vec operator~(vec a) {", "operator flipped", "operator(vec a)"),
    ],
)
def test_what_is_changed(line, kind, changed):
    found = [text for made, text in _made(line) if made == kind]
    assert any(changed in text if changed else not text for text in found), found


def test_what_is_left_alone():
    assert not _made("{% for lane, distance in lanes %}")
    assert not _made("entry:")
    assert all("i64" in text for _, text in _made("  {{ r }} = add i64 {{ a }}, {{ b }}"))


def test_entries_of_tables():
    table = {"opcode": {"LT": {"int": "icmp slt", "uint": "icmp ult"}}, "rank": {"atom": 12}}
    found = {(e.operator, ".".join(e.keys), e.value) for e in table_edits("f", "t.toml", table)}
    assert ("entry exchanged", "opcode.LT.int", "icmp ult") in found
    assert ("operator flipped", "opcode.LT.int", "icmp sge") in found
    assert ("comparison off by one", "opcode.LT.uint", "icmp ule") in found
    assert ("number shifted", "rank.atom", 13) in found


def _edit(folders, text):
    (edit, *_) = [e for e in spelling_edits(*folders) if text in str(e)]
    return edit


def _said(folders, say):
    return say(load_spelling(*folders))


@pytest.mark.parametrize(
    ("folders", "edit", "say", "wrong"),
    [
        (
            ("llvm",),
            "llvm/operations.toml, opcode.Add.int: 'add'  ->  'sub'",
            lambda s: s.tables["opcode"]["Add"]["int"],
            "sub",
        ),
        (
            ("llvm",),
            "binary: {{ result }} = {{ opcode }} {{ type }} {{ a }}, {{ b }}",
            lambda s: s.macros.binary("%r", "sub", "i32", "%a", "%b").strip(),
            "%r = sub i32 %b, %a",
        ),
        (
            ("llvm",),
            "_divisor_unsigned: {{ result }}.zero = icmp eq",
            lambda s: s.macros.mod_unsigned("%r", "i8", "i1", "%a", "%b", "0", "1").split()[3],
            "ne",
        ),
        (
            ("c_family", "opencl"),
            "c_family/prelude.j2, mod_uint: return b == 0 ? 0 : a % b;  ->  return b != 0",
            lambda s: s.macros.mod_uint("", "f", "uint", "uint", "uint", 32).split("b ", 2)[1][:2],
            "!=",
        ),
    ],
)
def test_an_edit_changes_the_spelling_of_its_process_alone(folders, edit, say, wrong):
    right, chosen = _said(folders, say), _edit(folders, edit)

    def work(send):
        chosen.apply(folders)
        send(_said(folders, say))

    assert run_in_child(work, 60).messages == (wrong,)
    assert _said(folders, say) == right != wrong


def test_what_a_dialect_says_itself_is_not_replaced():
    edits = [e for e in spelling_edits("c_family", "opencl") if e.file.endswith(".j2")]
    assert {e.folder for e in edits} == {"c_family", "opencl"}
    for edit in edits:
        text = (templates_dir() / edit.folder / edit.file).read_text(encoding="utf-8")
        assert edit.value != text and len(edit.value) - len(text) < 20


def test_there_are_hundreds_of_all_kinds():
    for folders in (("llvm",), ("c_family", "opencl"), ("c_family", "cuda")):
        edits = list(spelling_edits(*folders))
        kinds = {edit.operator for edit in edits}
        assert len(edits) > 250
        assert {
            "operator flipped",
            "operands exchanged",
            "line dropped",
            "branches exchanged",
        } <= kinds
