import pytest

import refcomp
from refcomp.foundation.errors import Unsupported, UserError
from tests.quotations import QUOTATION


def scanned():
    x = refcomp.placeholder((8, 6), name="X")
    st = refcomp.placeholder((8, 6), name="st")
    init = refcomp.compute((1, 6), lambda t, i: x[0, i], name="init")
    mid = refcomp.compute((8, 6), lambda t, i: st[t - 1, i] * 2.0, name="mid")
    up = refcomp.compute((8, 6), lambda t, i: mid[t, i] + x[t, i], name="up")
    s = refcomp.scan(init, up, st, name="S")
    return refcomp.create_schedule(s), x, init, mid, up, s


def attach_axes(schedule):
    return {s.name: s.attach_point.axis.name for s in schedule.stages if s.attach_point is not None}


def test_what_a_row_needs_is_computed_in_the_loop_of_the_scan():
    schedule, *_ = scanned()
    assert attach_axes(schedule) == {"mid": "S.idx", "up": "S.idx"}


def test_compute_root_takes_back_to_the_scan():
    schedule, _, init, mid, up, _ = scanned()
    schedule[mid].compute_at(schedule[up], up.op.axis[1])
    assert attach_axes(schedule)["mid"] == "i"
    for tensor in (mid, up, init):
        schedule[tensor].compute_root()
    assert attach_axes(schedule) == {"mid": "S.idx", "up": "S.idx"}


def test_the_update_stays():
    schedule, _, init, mid, up, s = scanned()
    with pytest.raises(
        UserError, match=rf"cannot move stage up\n{QUOTATION}.*the update of scan S(.|\n)*memory"
    ):
        schedule[up].compute_at(schedule[s], s.op.scan_axis)
    with pytest.raises(UserError, match=f"cannot inline stage up\n{QUOTATION}.*update of scan S"):
        schedule[up].compute_inline()
    schedule[mid].compute_inline()
    with pytest.raises(UserError, match="stage S is a scan, which reads its memory"):
        schedule[init].compute_inline()


@pytest.mark.parametrize(
    "primitive",
    [
        lambda s, axis: s.split(axis, 2),
        lambda s, axis: s.reorder(axis),
        lambda s, axis: s.parallel(axis),
        lambda s, axis: s.vectorize(axis),
        lambda s, axis: s.bind(axis, refcomp.thread_axis("threadIdx.x")),
    ],
)
def test_the_scan_axis_is_ordered(primitive):
    schedule, *_, s = scanned()
    with pytest.raises(UserError, match=r"axis S.idx of stage S\n(.|\n)*it is ordered: each itera"):
        primitive(schedule[s], s.op.scan_axis)
    with pytest.raises(UserError, match="it is opaque: a scan computes"):
        primitive(schedule[s], s.op.axis[1])


def test_a_scan_is_no_guest():
    schedule, *_, s = scanned()
    out = refcomp.compute((8, 6), lambda t, i: s[t, i], name="out")
    schedule = refcomp.create_schedule(out)
    with pytest.raises(UserError, match="it is a scan: all of it is computed at once"):
        schedule[s].compute_at(schedule[out], out.op.axis[0])


def test_a_scan_reads_no_copies():
    schedule, _, init, _, _, s = scanned()
    with pytest.raises(Unsupported, match="scan S cannot read a copy of init"):
        schedule.cache_read(init, "global", [s])
