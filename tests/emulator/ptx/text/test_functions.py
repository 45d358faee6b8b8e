"""Functions: heads, statements, blocks, labels, places in source files."""

import pytest

from refcomp.emulator.ptx.text.functions import read_function
from refcomp.emulator.ptx.text.module import LabelName, Location, Register, SymbolAddress, Vector
from refcomp.emulator.ptx.text.tokens import DamagedPtx, Tokens

FILES = {1: "a.cu", 2: "b.h"}


def _read(text, **options):
    tokens = Tokens(text)
    used = []
    given = {"is_extern": False, "globals_": (), "files": FILES, "use": used.append} | options
    function = read_function(tokens, **given)
    assert tokens.kind == "end"
    return function, used


def _body(text):
    return _read(f".entry k() {{ .reg .b32 %r<9>; .reg .pred %p<9>; {text} }}")[0]


def test_a_kernel_with_parameters_and_limits():
    kernel, _ = _read(
        """.entry k(.param .u64 a, .param .align 8 .b8 b[24])
        .maxntid 16, 2, 1 .minnctapersm 2 .noreturn .explicitcluster .pragma "x";
        { .shared .b32 s; ret; }"""
    )
    assert kernel.is_entry and kernel.name == "k" and not kernel.is_declaration
    assert [(p.name, p.bytes) for p in kernel.parameters] == [("a", 8), ("b", 24)]
    assert kernel.limits == {
        "maxntid": (16, 2, 1),
        "minnctapersm": (2,),
        "noreturn": (),
        "explicitcluster": (),
    }
    assert [v.name for v in kernel.variables] == ["s"]
    assert [str(one) for one in kernel.instructions] == ["ret;".rstrip(";")]


def test_a_function_with_a_result_and_a_declaration():
    function, _ = _read(".func (.param .b32 r) f(.param .b32 a) { st.param.b32 [r+0], 1; ret; }")
    assert not function.is_entry
    assert [v.name for v in function.results] == ["r"]
    declared, _ = _read(".func f\n(\n.param .b32 a\n)\n.noreturn;", is_extern=True)
    assert declared.is_declaration and declared.limits == {"noreturn": ()}
    attributed, _ = _read(".func .attribute(.unified(1, 2)) f();")
    assert attributed.name == "f"


def test_instructions_have_their_places_and_predicates():
    kernel = _body("\n@%p1 add.cc.s32 %r1,\n %r1, 2;\n@!%p2 ld .global.u32 %r2, [%r1];")
    first, second, _ = kernel.instructions
    assert (first.line, first.opcode, first.modifiers) == (2, "add", ("cc", "s32"))
    assert (first.number, first.predicate, first.is_negated) == (0, Register("%p1"), False)
    assert first.text == "@%p1 add.cc.s32 %r1, %r1, 2"
    assert (second.line, second.modifiers, second.is_negated) == (4, ("global", "u32"), True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["ret"]),
        ("trap;", ["trap"]),
        ("ret; END:", ["ret"]),
        ("bra END; END:", ["bra END", "ret"]),
        ("mov.u32 %r1, 1;", ["mov.u32 %r1, 1", "ret"]),
        ("@%p1 ret;", ["@%p1 ret", "ret"]),
    ],
)
def test_a_function_returns_at_its_end(text, expected):
    function = _body(text)
    assert [str(one) for one in function.instructions] == expected
    assert [one.number for one in function.instructions] == [*range(len(expected))]


def test_labels_of_blocks_and_lists():
    kernel = _body(
        """
        { bra L; L: }
        { bra L; bra out; L: }
        list: .branchtargets out, L2;
        brx.idx %r1, list;
        L2: out: ret;
        end:
        """
    )
    assert kernel.labels == {"L": 1, "L#1": 3, "L2": 4, "out": 4, "end": 5}
    targets = [one.operands[0] for one in kernel.instructions[:3]]
    assert targets == [LabelName("L"), LabelName("L#1"), LabelName("out")]
    assert kernel.branch_targets == {"list": ("out", "L2")}


def test_lists_in_blocks_are_renamed_with_their_labels():
    block = "{ t: .branchtargets a, b; brx.idx %r1, t; a: b: }"
    kernel = _body(block + block)
    assert kernel.branch_targets == {"t": ("a", "b"), "t#1": ("a#1", "b#1")}
    assert kernel.instructions[1].operands == (Register("%r1"), LabelName("t#1"))


def test_calls_have_parameters_of_their_blocks():
    call = """{ .reg .b32 temp; .param .b32 param0; st.param.b32 [param0+0], %r1;
      .param .b32 retval0; p: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);
      call (retval0), %r2, (param0), p; }"""
    kernel = _body(call + call)
    assert [v.name for v in kernel.variables] == ["param0", "retval0"]
    argument = Vector((SymbolAddress("param0"),))
    result = Vector((SymbolAddress("retval0"),))
    assert [one.operands for one in kernel.instructions if one.opcode == "call"] == [
        (result, Register("%r2"), argument, LabelName("p")),
        (result, Register("%r2"), argument, LabelName("p#1")),
    ]


def test_lists_of_functions_are_uses():
    _, used = _read(".entry k() { t: .calltargets f, g; }")
    assert used == ["f", "g"]


def test_places_in_source_files():
    kernel = _body(
        """ret; .loc 1 5 3 ret; ret;
        .loc 2 7 0, function_name $L__info+8, inlined_at 1 6 2
        ret; .loc 1 0 0 ret;"""
    )
    first = Location("a.cu", 5)
    assert [one.location for one in kernel.instructions] == [
        None, first, first, Location("b.h", 7, Location("a.cu", 6)), None
    ]  # fmt: skip


def test_only_registers_that_are_named_are_listed():
    kernel = _body("add.s32 %r1, %r2, %tid.x;")
    assert kernel.registers == {"%r1": "b32", "%r2": "b32"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (".entry k() {", "expected a statement, not the end of the file"),
        (".entry k() { { ret; }", "expected a statement, not the end of the file"),
        (".entry k() { ret }", "expected ; behind ret, not '}'|expected an operand"),
        (".entry k() { bra L; }", "the label L is missing"),
        (".entry k() { L: L: }", "L is declared twice in a block"),
        (".entry k() { a.b: }", "a.b cannot be a label"),
        (".entry k() { .loc 7 1 1 }", ".loc names file 7, which no .file declares"),
        (".entry k() { .loc 1 a 1 }", "expected a number of .loc, not 'a'"),
        (".entry k() { .version 8.0 }", ".version does not belong into a function"),
        (".entry k() .maxntid 1,2,3,4 {}", ".maxntid has 4 numbers"),
        (".entry k() .maxnt 1 {}", ".maxnt does not belong in front of the body"),
        (".entry k( {}", "a declaration lacks its space or its type"),
        (".entry k(.param .b32 a, .param .b32 a) {}", "a is declared twice"),
        (".entry k() { p: .callprototype () f (); }", "a prototype has _ in place of a name"),
        (".entry k() { @5 ret; }", "expected the name of a predicate, not '5'"),
        (".entry k() { @%laneid ; }", "expected the name of an instruction, not ';'"),
        (".entry k() { .pragma 5; }", "expected a pragma in quotation marks, not '5'"),
    ],
)
def test_damaged_functions(text, what):
    with pytest.raises(DamagedPtx, match=what):
        _read(text)


def test_an_extern_function_has_no_body():
    with pytest.raises(DamagedPtx, match="f is declared .extern and has a body"):
        _read(".func f() { ret; }", is_extern=True)
