"""What random tests count, and what all shards of a run counted together."""

import json

import pytest

import refcomp
from tests.properties.histogram import Histogram, whole_of


def _counted(kind, *primitives):
    a = refcomp.placeholder((8, 8), name="A")
    b = refcomp.compute((8, 8), lambda i, j: a[i, j] + 1, name="B")
    c = refcomp.compute((8, 8), lambda i, j: b[i, j] * 2, name="C")
    s = refcomp.create_schedule(c)
    for primitive in primitives:
        if primitive == "compute_at":
            s[b].compute_at(s[c], c.op.axis[0])
        else:
            getattr(s[c], primitive)(s[c].leaf_iter_vars[-1], **_OPTIONS.get(primitive, {}))
    histogram = Histogram()
    histogram.add(kind, s)
    return histogram


_OPTIONS = {"split": {"factor": 2}}


def test_a_schedule_counts_each_of_its_primitives_once():
    histogram = _counted("two stages", "split", "split", "compute_at", "unroll")
    assert histogram.share("split") == histogram.share("unroll") == 1
    assert histogram.share("fuse") == 0 and histogram.near == 1
    assert histogram.deep_share() == 1 and histogram.depths == [4]
    assert str(histogram).startswith("1 schedules, median depth 4, 100% of at least four steps")


def test_nothing_counted_has_no_shares():
    histogram = Histogram()
    assert histogram.share("split") == histogram.deep_share() == 0
    assert str(histogram).startswith("0 schedules, median depth 0")


def test_the_whole_is_there_with_the_last_shard(tmp_path):
    folder = tmp_path / "counts"
    parts = [
        _counted("fold", "split"),
        _counted("fold", "split", "split", "split", "unroll"),
        _counted("two stages", "compute_at"),
    ]
    assert whole_of(parts[2], 2, 3, folder) is None
    assert whole_of(parts[0], 0, 3, folder) is None
    whole = whole_of(parts[1], 1, 3, folder)
    assert dict(whole.kinds) == {"fold": 2, "two stages": 1}
    assert dict(whole.with_primitive) == {"split": 2, "unroll": 1, "compute_at": 1}
    assert sorted(whole.depths) == [1, 1, 4] and whole.near == 1
    assert whole.share("split") == pytest.approx(2 / 3)
    assert whole.deep_share() == pytest.approx(1 / 3)


def test_a_shard_that_comes_again_counts_once(tmp_path):
    part = _counted("fold", "split")
    assert whole_of(part, 0, 2, tmp_path) is whole_of(part, 0, 2, tmp_path) is None
    assert len(whole_of(part, 1, 2, tmp_path).depths) == 2


def test_what_is_left_in_the_folder_is_all_that_was_counted(tmp_path):
    part = _counted("fold", "split", "unroll")
    whole_of(part, 0, 2, tmp_path)
    (left,) = tmp_path.iterdir()
    assert json.loads(left.read_text()) == json.loads(json.dumps(vars(part)))
    assert vars(whole_of(Histogram(), 1, 2, tmp_path)) == vars(part)
