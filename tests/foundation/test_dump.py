import pytest

from refcomp.foundation.dump import dump_stage, is_dumping, is_keeping
from refcomp.foundation.errors import UserError


def test_nothing_is_written_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("REFCOMP_DUMP", raising=False)
    monkeypatch.chdir(tmp_path)
    dump_stage("lowered", "text")
    assert not is_dumping() and not list(tmp_path.iterdir())


def test_stages_are_numbered_and_names_are_tamed(tmp_path, monkeypatch):
    folder = tmp_path / "made" / "when missing"
    monkeypatch.setenv("REFCOMP_DUMP", str(folder))
    dump_stage("lowered", "first")
    dump_stage("../evil/name", "second")
    first, second = sorted(folder.iterdir())
    assert first.name.endswith("_lowered.txt") and first.read_text() == "first"
    assert second.name.endswith("_.._evil_name.txt") and second.read_text() == "second"
    assert int(second.name[:3]) == int(first.name[:3]) + 1


def test_a_folder_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("REFCOMP_DUMP", str(tmp_path / "file"))
    with pytest.raises(UserError, match="stages cannot be written to .*file\n.*REFCOMP_DUMP"):
        dump_stage("lowered", "text")


def test_runs_of_tools_are_kept_if_a_folder_is_named(monkeypatch):
    monkeypatch.delenv("REFCOMP_KEEP", raising=False)
    assert not is_keeping()
    monkeypatch.setenv("REFCOMP_KEEP", "folder")
    assert is_keeping()
