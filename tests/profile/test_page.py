"""The page of a profile: in a browser, and as text that names cannot break out of."""

import re
from dataclasses import replace

import pytest

import refcomp as rc
from refcomp.driver.nvidia_resources import NvidiaResources
from refcomp.emulator.observers.counting import KernelCounts
from refcomp.emulator.ptx.observers.opcodes import PTX
from refcomp.foundation.errors import UserError
from refcomp.profile.advice import Advice
from refcomp.profile.listing import Line, Listing
from refcomp.profile.page import page_of, write_page
from refcomp.profile.report import report_of
from tests.profile.programs import product, report, transposed

_HOSTILE = "<script>alert(1)</script> & \"'</div>"


def _hostile_report():
    """Of whose parts each is hostile."""
    found = report_of(KernelCounts(_HOSTILE, _HOSTILE, 64, 128))
    lines = {name: (Line(_HOSTILE, (1,), 1, _HOSTILE),) for name in found.listing.texts}
    advice = (Advice(_HOSTILE, _HOSTILE, 1),)
    return replace(found, listing=Listing(lines, {}), advice=advice)


@pytest.mark.search
def test_names_and_sources_are_escaped():
    page = page_of([_hostile_report()], title=_HOSTILE)
    assert page.count("<script>") == 1  # our own
    assert page_of([_hostile_report(), _hostile_report()]).count("<script>") == 1
    assert "alert(1)&lt;/script&gt; &amp; &#34;&#39;&lt;/div&gt;" in page
    assert page.count("<div") == page.count("</div")


def test_the_page_holds_all_that_it_needs():
    page = page_of([_hostile_report()])
    assert "default-src 'none'" in page
    assert re.findall(r"""(?:src|href)=["'](?!data:)""", page) == []
    assert "http:" not in page and "https:" not in page


def test_each_kernel_has_a_section():
    page = page_of([_hostile_report(), _hostile_report()])
    assert page.count('<section class="kernel" id="kernel-') == 2
    assert page.count('data-pane="LLVM IR">') == 2


def test_a_kernel_without_code_has_a_label_for_each_figure():
    facts = dict(re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td></tr>", page_of([_hostile_report()])))
    assert facts["launches"] == "0"
    assert facts["groups"] == "0"
    assert facts["waves of 64 lanes"] == "0"
    assert "vector registers spilled to memory" not in facts


def _ptx_report(**changes):
    """Of a kernel that never ran, on an NVIDIA GPU."""
    counts = KernelCounts("k", "sm_90", 32, 32, block=(64, 1, 1), launches=1, isa=PTX)
    return replace(report_of(counts), **changes)


def _facts(page):
    return dict(re.findall(r"<tr.*?><td>(.*?)</td><td>(.*?)</td></tr>", page))


def test_kernels_of_nvidia_gpus_are_described_in_nvidias_words():
    resources = NvidiaResources(
        *("k", "sm_90", 40, 8, 8, 16, 1024, 4096, 0, 1, 64), blocks=21, warps=42, limit="warps",
        advice="",
    )  # fmt: skip
    page = page_of([_ptx_report(resources=resources)])
    facts = _facts(page)
    assert facts["blocks"] == "0" and facts["warps of 32 lanes"] == "0"
    assert facts["threads of a block"] == "64 x 1 x 1"
    assert facts["registers of a thread"] == "40" and facts["bytes of shared memory"] == "1,024"
    assert facts["bytes of it that the launch adds"] == "4,096"
    assert facts["blocks of a multiprocessor at a time, limited by warps"] == "21"
    assert facts["warps of these blocks"] == "42"
    assert 'data-pane="PTX">' in page and 'data-pane="ISA">' not in page
    facts = _facts(page_of([_ptx_report()]))
    assert facts["registers and occupancy"] == "not known without the PTX"


def test_only_blocks_of_several_statements_are_indented():
    loops = """
for i in range(4) {
  for j in range(4) {
    let t: i64 = i * 4 {
      A[t] = 0.0f32
      for k in range(4) {
        A[t] = A[t] + B[k]
      }
    }
  }
}
C[0] = 1.0f32
""".strip().splitlines()
    found = report_of(KernelCounts("nest", "gfx942", 64, 128))
    texts = {"loop IR": tuple(map(Line, loops))}
    page = page_of([replace(found, listing=Listing(texts, {}))])
    rows = re.findall(r'<span class="text"(?: style="--depth: (\d+)")?>(.*?)</span>', page)
    assert [(int(depth or 0), text) for depth, text in rows] == [
        (0, "for i in range(4) {"),
        (0, "for j in range(4) {"),
        (0, "let t: i64 = i * 4 {"),
        (1, "A[t] = 0.0f32"),
        (1, "for k in range(4) {"),
        (1, "A[t] = A[t] + B[k]"),
        (1, "}"),
        (0, "}"),
        (0, "}"),
        (0, "}"),
        (0, "C[0] = 1.0f32"),
    ]


def test_a_page_that_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match="cannot be written"):
        write_page(tmp_path / "no" / "page.html", [])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A browser that shows the profile of a product whose tensors have hostile names."""
    from tests.profile.browser import opened  # noqa: PLC0415  (selenium may be absent)

    folder = tmp_path_factory.mktemp("page")
    programs = product(), _named("<b>A&amp;</b>"), transposed()
    reports = [*(report(*program) for program in programs), _long_report()]
    write_page(folder / "profile.html", reports)
    with opened(folder / "profile.html", folder / "browser") as driver:
        yield driver


def _long_report():
    """Of whose LLVM IR one line, far below, belongs to an instruction."""
    lines = [Line(f"line {n}", (7,) if n == 2600 else ()) for n in range(3000)]
    texts = {"schedule": (), "loop IR": (), "LLVM IR": tuple(lines), "ISA": (Line("s_nop", (7,)),)}
    found = report_of(KernelCounts("long", "gfx942", 64, 128))
    return replace(found, listing=Listing(texts, {}))


def _named(name):
    a = rc.placeholder((64,), name=name)
    b = rc.compute((64,), lambda i: a[i] * 2.0, name="<i>B</i>")
    s = rc.create_schedule(b)
    s[b].bind(b.op.axis[0], rc.thread_axis("threadIdx.x"))
    return s, [a, b]


def _texts(page, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
    return page.execute_script(script, selector)


def _pane(name, kernel=1):
    return f".kernel:nth-of-type({kernel}) .pane[data-pane='{name}'] .line"


def _click(page, selector, text):
    script = (
        "const e = [...document.querySelectorAll(arguments[0])]"
        ".find((e) => e.textContent.includes(arguments[1])); e.click(); return e.dataset.links"
    )
    return page.execute_script(script, selector, text)


def _is_in_view(page, selector):
    """Whether the first such line stands within its pane, which scrolls by itself."""
    script = (
        "const e = document.querySelector(arguments[0]), a = e.getBoundingClientRect(),"
        "b = e.closest('.lines').getBoundingClientRect();"
        "return e.closest('.lines').scrollTop > 0 && b.top <= a.top && a.bottom <= b.bottom"
    )
    return page.execute_script(script, selector)


@pytest.mark.browser
@pytest.mark.rocm
def test_four_panes_without_network_or_complaint(page):
    from tests.profile.browser import complaints, requests_to_networks  # noqa: PLC0415

    assert _texts(page, ".kernel:nth-of-type(1) .pane h3") == [
        "schedule",
        "loop IR",
        "LLVM IR",
        "ISA",
    ]
    assert all(_texts(page, _pane(name)) for name in ("schedule", "loop IR", "LLVM IR", "ISA"))
    assert requests_to_networks(page) == []
    assert complaints(page) == []


@pytest.mark.browser
@pytest.mark.rocm
def test_clicking_an_instruction_marks_what_belongs_to_it_in_all_panes(page):
    links = _click(page, _pane("ISA"), "v_fmac_f32")
    chosen = {name: _texts(page, f"{_pane(name)}.chosen") for name in ("loop IR", "LLVM IR", "ISA")}
    (statement,) = chosen["loop IR"]
    assert "fma(" in statement and links
    _fold(page, "LLVM IR")
    assert any("llvm.fma" in line for line in chosen["LLVM IR"])
    assert 0 < len(chosen["LLVM IR"]) < len(_texts(page, _pane("LLVM IR")))
    assert any("v_fmac_f32" in line for line in chosen["ISA"])
    (primitive,) = _texts(page, f"{_pane('schedule')}.chosen")
    assert "s[C].bind(j.inner, threadIdx.x)" in primitive
    assert _is_in_view(page, f"{_pane('LLVM IR')}.chosen")
    _fold(page, "LLVM IR")
    # Another click chooses anew, in this kernel alone.
    _click(page, _pane("ISA"), "s_endpgm")
    assert not any("v_fmac_f32" in line for line in _texts(page, f"{_pane('ISA')}.chosen"))
    assert _texts(page, f"{_pane('loop IR', 2)}.chosen") == []


@pytest.mark.browser
@pytest.mark.rocm
def test_what_belongs_together_comes_into_view_in_long_texts_too(page):
    assert _click(page, _pane("ISA", 4), "s_nop") == "7"
    _fold(page, "LLVM IR", 4)
    assert _texts(page, f"{_pane('LLVM IR', 4)}.chosen") == ["line 2600"]
    assert _is_in_view(page, f"{_pane('LLVM IR', 4)}.chosen")


def _fold(page, name, kernel=1):
    """Fold a pane, or unfold it."""
    script = "document.querySelector(arguments[0]).click()"
    page.execute_script(script, f"#kernel-{kernel} .pane[data-pane='{name}'] .fold")


def _width(page, name, kernel=1):
    script = "return document.querySelector(arguments[0]).getBoundingClientRect().width"
    return page.execute_script(script, f"#kernel-{kernel} .pane[data-pane='{name}']")


@pytest.mark.browser
@pytest.mark.rocm
def test_panes_fold_and_llvm_ir_is_folded_at_first(page):
    page.set_window_size(1400, 900)
    assert _width(page, "LLVM IR", 2) < 50
    others = _width(page, "ISA", 2)
    _fold(page, "LLVM IR", 2)
    assert _width(page, "LLVM IR", 2) > 200
    assert _width(page, "ISA", 2) < others
    _fold(page, "LLVM IR", 2)
    assert _width(page, "ISA", 2) == others


@pytest.mark.browser
@pytest.mark.rocm
def test_a_divider_is_dragged_and_moved_by_keys(page):
    from selenium.webdriver import ActionChains  # noqa: PLC0415  (as above)
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    page.set_window_size(1400, 900)
    divider = page.find_element(By.CSS_SELECTOR, "#kernel-2 .divider")
    before = _width(page, "schedule", 2), _width(page, "loop IR", 2), _width(page, "ISA", 2)
    page.execute_script("arguments[0].scrollIntoView()", divider)
    ActionChains(page).drag_and_drop_by_offset(divider, -50, 0).perform()
    after = _width(page, "schedule", 2), _width(page, "loop IR", 2), _width(page, "ISA", 2)
    assert before[0] - after[0] == pytest.approx(50, abs=4)
    assert after[1] - before[1] == pytest.approx(50, abs=4)
    assert after[2] == pytest.approx(before[2], abs=1)
    page.execute_script("arguments[0].focus()", divider)
    _press(page, "ARROW_RIGHT", "ARROW_RIGHT")
    assert _width(page, "schedule", 2) - after[0] == pytest.approx(40, abs=4)


def _first_in_view(page, selector):
    """The counts of the lines of a pane that are in view."""
    script = (
        "const lines = document.querySelector(arguments[0]), box = lines.getBoundingClientRect();"
        "return [...lines.querySelectorAll('.line')].filter((e) => {"
        "const r = e.getBoundingClientRect(); return r.top >= box.top && r.bottom <= box.bottom})"
        ".map((e) => e.querySelector('.count')?.textContent || '')"
    )
    return [int(text.replace(",", "") or 0) for text in page.execute_script(script, selector)]


@pytest.mark.browser
@pytest.mark.rocm
def test_a_pane_begins_at_its_hottest_line(page):
    page.refresh()
    page.set_window_size(1400, 900)
    page.execute_script("document.querySelector('#kernel-1').scrollIntoView()")
    counts = [int(t.replace(",", "") or 0) for t in _texts(page, f"{_pane('loop IR')} .count")]
    pane = "#kernel-1 .pane[data-pane='loop IR'] .lines"
    assert max(_first_in_view(page, pane)) == max(counts) > 0
    assert _texts(page, ".chosen") == []


@pytest.mark.browser
@pytest.mark.rocm
def test_a_button_goes_from_the_hottest_line_to_the_next(page):
    script = "document.querySelector('#kernel-1 .hottest').click()"
    counts = [int(t.replace(",", "") or 0) for t in _texts(page, f"{_pane('loop IR')} .count")]
    met = []
    for _ in range(2):
        page.execute_script(script)
        (count,) = _texts(page, f"{_pane('loop IR')}.current .count")
        met.append(int(count.replace(",", "")))
    assert met == sorted(counts, reverse=True)[:2]
    assert _texts(page, "#kernel-1 .place")[0].startswith("2 of ")
    _press(page, "ESCAPE")


@pytest.mark.browser
@pytest.mark.rocm
def test_heat_has_a_column_of_its_own_and_bars_show_each_class(page):
    script = (
        "return [...document.querySelectorAll('#kernel-1 .line')].filter((e) => {"
        "const heat = e.querySelector('.heat'), text = e.querySelector('.text');"
        "return heat && heat.getBoundingClientRect().right > text.getBoundingClientRect().left})"
        ".length"
    )
    assert page.execute_script(script) == 0
    bars = "return [...document.querySelectorAll('#kernel-1 .bar')].map((e) => e.offsetWidth)"
    widths = page.execute_script(bars)
    assert len(widths) > 8 and max(widths) > 80


@pytest.mark.browser
@pytest.mark.rocm
def test_clicking_a_primitive_marks_the_loops_that_it_made(page):
    _click(page, _pane("schedule"), "bind(i.outer, blockIdx.y)")
    loops = _texts(page, f"{_pane('loop IR')}.chosen")
    assert loops and "for blockIdx.y" in loops[0]
    assert not any("threadIdx.x in" in loop for loop in loops)


def _press(page, *keys):
    """Keys for whatever has the focus; the lines that are marked then, of each pane."""
    from selenium.webdriver import ActionChains, Keys  # noqa: PLC0415  (as above)

    actions = ActionChains(page)
    for key in keys:
        actions.send_keys(getattr(Keys, key, key))
    actions.perform()
    return {name: _texts(page, f"{_pane(name)}.chosen") for name in ("loop IR", "LLVM IR", "ISA")}


@pytest.mark.browser
@pytest.mark.rocm
def test_a_pane_is_walked_through_by_keys(page):
    focus = "document.querySelector(arguments[0]).focus()"
    page.execute_script(focus, ".kernel:nth-of-type(1) .pane[data-pane='loop IR'] .lines")
    first = _press(page, "ESCAPE", "HOME")["loop IR"]
    assert first == _texts(page, _pane("loop IR"))[:1]
    assert _press(page, "ARROW_DOWN")["loop IR"] == _texts(page, _pane("loop IR"))[1:2]
    assert _press(page, "ARROW_UP")["loop IR"] == first
    (line,) = [n for n, text in enumerate(_texts(page, _pane("loop IR"))) if "fma(" in text]
    found = _press(page, *["ARROW_DOWN"] * line)
    assert "fma(" in found["loop IR"][0] and found["LLVM IR"]
    assert any("v_fmac_f32" in line for line in found["ISA"])
    assert _press(page, "ESCAPE") == {"loop IR": [], "LLVM IR": [], "ISA": []}


@pytest.mark.browser
@pytest.mark.rocm
def test_advice_and_accesses_lead_to_their_lines(page):
    script = (
        "const e = [...document.querySelectorAll(arguments[0])].find((e) => e.dataset.links);"
        "e.focus(); return document.activeElement === e"
    )
    page.execute_script("document.querySelector('#kernel-3 details').open = true")
    chosen = f"{_pane('loop IR', 3)}.chosen"
    for selector in ("li.line-link", "tr.line-link"):
        assert page.execute_script(script, f"#kernel-3 {selector}")
        _press(page, "ENTER")
        assert "A@[" in "".join(_texts(page, chosen))
        _press(page, "ESCAPE")
        assert not _texts(page, chosen)


@pytest.mark.browser
@pytest.mark.rocm
def test_kernels_stand_side_by_side_and_lead_to_their_sections(page):
    links = page.execute_script(
        "return [...document.querySelectorAll('.kernels a')].map((e) => [e.textContent, e.hash])"
    )
    names = ["long", "program_kernel0", "program_kernel0", "program_kernel0"]
    assert sorted(name for name, _ in links) == names
    assert ["long", "#kernel-4"] in links and ["program_kernel0", "#kernel-1"] in links
    assert page.execute_script("return document.querySelector('#kernel-2 h2').textContent")
    (last,) = _texts(page, ".kernels tbody tr:last-child td:first-child")
    assert last == "all"


@pytest.mark.browser
@pytest.mark.rocm
@pytest.mark.parametrize("width", [700, 1400])
def test_nothing_stands_out_of_the_page(page, width):
    page.set_window_size(width, 900)
    assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.browser
@pytest.mark.rocm
def test_moving_over_a_line_marks_what_belongs_to_it(page):
    script = (
        "const e = [...document.querySelectorAll(arguments[0])]"
        ".find((e) => e.textContent.includes('fma('));"
        "e.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    )
    page.execute_script(script, _pane("loop IR"))
    assert any("v_fmac_f32" in line for line in _texts(page, f"{_pane('ISA')}.hover"))


@pytest.mark.browser
@pytest.mark.rocm
def test_hostile_names_are_text(page):
    assert page.execute_script("return document.querySelectorAll('b, i').length") == 0
    lines = _texts(page, _pane("schedule", 2))
    assert any("s[<i>B</i>].bind(" in line for line in lines)
