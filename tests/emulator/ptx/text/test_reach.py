"""Which functions a kernel reaches."""

from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.emulator.ptx.text.reach import reached_functions, symbols_in
from tests.emulator.ptx.texts import HEADER

_TEXT = f"""{HEADER}
.shared .align 4 .b8 tile[16];
.func inner() {{ st.shared.u32 [tile+4], 1; ret; }}
.func outer() {{ call inner; ret; }}
.func taken() {{ ret; }}
.func other() {{ ret; }}
.global .align 8 .u64 table[1] = {{taken}};
.visible .entry direct() {{ call outer; ret; }}
.visible .entry indirect() {{
    .reg .b64 %rd<2>;
    ld.global.u64 %rd1, [table];
    call %rd1, (), $shape;
$shape: .callprototype ()_ ();
    ret;
}}
.visible .entry alone() {{ ret; }}
"""


def _names(kernel):
    return {one.name for one in reached_functions(read_ptx(_TEXT), kernel)}


def test_functions_are_reached_over_others():
    assert _names("direct") == {"direct", "outer", "inner"}
    assert _names("alone") == {"alone"}


def test_a_call_by_address_reaches_what_has_an_address():
    assert _names("indirect") == {"indirect", "taken"}


def test_a_function_names_variables_in_addresses():
    assert list(symbols_in(read_ptx(_TEXT).functions["inner"])) == ["tile"]
