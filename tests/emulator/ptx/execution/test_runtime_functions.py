"""What kernels print, the memory that they allocate, and their assertions."""

import numpy as np
import pytest

from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.foundation.errors import Unsupported
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, run, words

_BEFORE = """
.extern .func (.param .b32 result) vprintf (.param .b64 text, .param .b64 values);
.extern .func (.param .b64 result) malloc (.param .b64 size);
.extern .func free (.param .b64 place);
.extern .func __assertfail
(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
"""


def _texts(**texts):
    found = _BEFORE
    for name, text in texts.items():
        data = [*text.encode(), 0]
        found += f".global .align 1 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};\n"
    return found


def _printing(text, stores, **texts):
    body = f"""
        .local .align 8 .b8 values[64];
        {OWN_PLACE}
        mov.u64 %rd3, values; cvta.local.u64 %rd4, %rd3; mov.u64 %rd5, text; mov.u64 %rd8, word;
        {stores}
        .param .b64 a; .param .b64 b; .param .b32 c;
        st.param.b64 [a], %rd5; st.param.b64 [b], %rd4;
        call.uni (c), vprintf, (a, b);
        ld.param.b32 %r9, [c];
        st.global.u32 [%rd2], %r9;
        ret;
    """
    return kernel(body, before=_texts(text=text, word="word", **texts))


def test_values_are_printed_as_by_c(capsys):
    stores = """
        st.local.u32 [%rd3], -7; st.local.f64 [%rd3+8], 0d4004000000000000;
        st.local.u64 [%rd3+16], -1; st.local.u64 [%rd3+24], %rd8; st.local.u32 [%rd3+32], 65;
        st.local.u32 [%rd3+36], 255; st.local.u32 [%rd3+40], 5; st.local.u32 [%rd3+44], 42;
    """
    text = _printing("%d|%8.3f|%llx|%-6s|%c%%|%#06x|%*u\n", stores)
    data = words(1)
    report = run(text, [data, np.uint32(0)], block=1)
    assert report.findings == ()
    wanted = "-7|   2.500|ffffffffffffffff|word  |A%|0x00ff|   42\n"
    assert report.printed == capsys.readouterr().out == wanted
    assert data[0] == 8  # the width is an argument, too


def test_more_forms():
    stores = """
        st.local.u32 [%rd3], 0x1ffff; st.local.u32 [%rd3+4], -1; st.local.u32 [%rd3+8], 8;
        st.local.f64 [%rd3+16], 0d3ff8000000000000; st.local.f64 [%rd3+24], 0d3ff8000000000000;
        st.local.u64 [%rd3+32], 4096;
    """
    text = _printing("%hd %hhu %o %a %.1e %p", stores)
    report = run(text, [words(1), np.uint32(0)], block=1)
    assert report.printed == "-1 255 10 0x1.8000000000000p+0 1.5e+00 0x1000"


def test_each_thread_prints_in_turn():
    report = run(_printing("%u,", "st.local.u32 [%rd3], %r1;"), [words(5), np.uint32(0)], block=5)
    assert report.printed == "0,1,2,3,4,"


def test_precision_of_an_argument_may_be_negative():
    stores = "st.local.u32 [%rd3], -1; st.local.f64 [%rd3+8], 0d4004000000000000;"
    report = run(_printing("%.*f", stores), [words(1), np.uint32(0)], block=1)
    assert report.printed == "2.500000"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("malloc (.param .b64 size)", "malloc (.param .b64 size, .param .b64 more)"),
        ("(.param .b64 result) malloc", "malloc"),
        ("free (.param", "(.param .b32 result) free (.param"),
        (".b64 values)", ".b8 values[24])"),
        (
            "(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e)",
            "(.param .b64 a)",
        ),
    ],
)
def test_declaration_that_is_not_of_cuda_is_refused(right, wrong):
    assert right in _BEFORE
    name = next(n for n in ("malloc", "free", "vprintf", "__assertfail") if n in _line_of(right))
    body = ".param .b64 a; call.uni NAME, (a); ret;".replace("NAME", name)
    with pytest.raises(Unsupported, match=f"declares {name} otherwise than CUDA") as caught:
        run(kernel(body, before=_BEFORE.replace(right, wrong)), [words(1), np.uint32(0)])
    assert "line " in str(caught.value)


def _line_of(part):
    """The declaration in which a text is."""
    return next(one for one in _BEFORE.split(";") if part in one)


def test_argument_that_nothing_wrote_is_found():
    report = run(_printing("%u %u", "st.local.u32 [%rd3], 1;"), [words(2), np.uint32(0)], block=2)
    assert kinds(report) == ["undefined"]
    assert report.findings[0].what == "what is printed depends on bits that nothing wrote"
    assert report.findings[0].times == 2


def test_size_of_memory_that_nothing_wrote_is_found():
    text = kernel(_HEAP.replace("[a], 8;", "[a], %rd9;").replace("PLACE", "0"), before=_BEFORE)
    report = run(text.replace("FREE", ""), [words(1), np.uint32(0)], block=1)
    assert kinds(report)[0] == "undefined"
    assert report.findings[0].what == "an argument of malloc depends on bits that nothing wrote"


def test_a_text_out_of_bounds_is_found():
    stores = "mov.u64 %rd5, 0; "
    report = run(_printing("x", stores), [words(1), np.uint32(0)], block=1)
    assert kinds(report) == ["out of bounds"]


_HEAP = f"""
    {OWN_PLACE}
    .param .b64 a; .param .b64 b;
    st.param.b64 [a], 8;
    call.uni (b), malloc, (a);
    ld.param.b64 %rd3, [b];
    st.u32 [%rd3+PLACE], %r1;
    ld.u32 %r2, [%rd3+PLACE];
    st.global.u32 [%rd2], %r2;
    FREE
    ret;
"""
_FREE = ".param .b64 c; st.param.b64 [c], %rd3; call.uni free, (c);"


def _heap(place="4", free=_FREE):
    text = kernel(_HEAP.replace("PLACE", place).replace("FREE", free), before=_BEFORE)
    data = words(4)
    return run(text, [data, np.uint32(0)], block=4, hazards=True), data


def test_threads_have_memory_of_their_own():
    report, data = _heap()
    assert report.findings == ()
    assert data.tolist() == [0, 1, 2, 3]


def test_memory_that_a_launch_did_not_free_is_told_and_no_finding():
    assert _heap()[0].unfreed == ()
    report, _ = _heap(free="")
    assert (report.unfreed, report.findings) == ((8,) * 4, ())
    text = kernel(_HEAP.replace("PLACE", "4").replace("FREE", ""), before=_BEFORE)
    gpu = EmulatedNvidiaGpu(size=1 << 20)
    loaded = gpu.load(text)
    for _ in range(2):  # what an earlier launch left is not told again
        again = gpu.run(loaded, "k", (1, 1, 1), (2, 1, 1), [words(2), np.uint32(0)])
        assert again.unfreed == (8, 8)


def test_memory_of_the_heap_has_bounds():
    report, _ = _heap(place="8")
    assert kinds(report)[0] == "out of bounds"
    assert "behind memory of malloc (8 bytes)" in report.findings[0].what


def test_memory_that_was_freed_is_not_used():
    report, _ = _heap(free=_FREE + "ld.u32 %r2, [%rd3+4];")
    assert kinds(report)[0] == "out of bounds"
    assert "memory of malloc, which was freed" in report.findings[0].what


def test_memory_is_freed_once_and_only_what_malloc_returned():
    twice = _FREE + "{" + _FREE + "}"
    report, _ = _heap(free=twice)
    assert kinds(report) == ["heap"]
    assert "frees memory that was freed before" in report.findings[0].what
    report, _ = _heap(free=_FREE.replace("%rd3", "%rd1"))
    assert "which malloc has not returned" in report.findings[0].what
    report, _ = _heap(free=_FREE.replace("%rd3", "0"))
    assert report.findings == ()


def test_a_failed_assertion_stops_the_launch():
    texts = _texts(what="n > 0", file="k.cu", where="k(int)")
    text = kernel(
        """
        setp.ne.u32 %p1, %r1, 3;
        @%p1 bra $end;
        .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
        mov.u64 %rd3, what; st.param.b64 [a], %rd3; mov.u64 %rd3, file; st.param.b64 [b], %rd3;
        st.param.b32 [c], 12; mov.u64 %rd3, where; st.param.b64 [d], %rd3; st.param.b64 [e], 1;
        call.uni __assertfail, (a, b, c, d, e);
    $end:
        ret;
        """,
        before=texts,
    )
    report = run(text, [words(1), np.uint32(0)], grid=2, block=8)
    assert kinds(report) == ["assertion"]
    what = "the assertion `n > 0` failed in k.cu, line 12, function k(int)"
    assert report.findings[0].what == what


def test_a_second_run_that_confirms_a_race_prints_nothing(capsys):
    """Thread 0 loads what the others store, and does not use it."""
    stores = """
        st.local.u32 [%rd3], %r1;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 ld.global.u32 %r7, [%rd1+4];
        @!%p1 st.global.u32 [%rd1+4], 5;
    """
    text = _printing("%u,", stores)
    report = run(text, [words(3), np.uint32(0)], block=3, hazards=True)
    assert report.printed == capsys.readouterr().out == "0,1,2,"
