import os

from refcomp.foundation.surroundings import state_of


def test_each_variable_counts(monkeypatch):
    monkeypatch.delenv("REFCOMP_X", raising=False)
    states = {state_of(["REFCOMP_X"], [])}
    for value in ("", "a", "b"):
        monkeypatch.setenv("REFCOMP_X", value)
        states.add(state_of(["REFCOMP_X"], []))
    assert len(states) == 4 and state_of(["REFCOMP_X"], []) in states


def test_a_file_that_appears_changes_or_is_replaced_counts(tmp_path):
    path = tmp_path / "tool"
    states = {state_of([], [str(path)])}
    path.write_text("one")
    os.utime(path, (1, 1))
    states.add(state_of([], [str(path)]))
    os.utime(path, (2, 2))
    states.add(state_of([], [str(path)]))
    other = tmp_path / "other"
    other.write_text("two")
    os.utime(other, (2, 2))
    path.unlink()
    path.symlink_to(other)
    states.add(state_of([], [str(path)]))
    assert len(states) == 4 and state_of([], [str(path)]) in states


def test_an_entry_of_a_folder_counts(tmp_path):
    os.utime(tmp_path, (1, 1))
    before = state_of([], [str(tmp_path)])
    assert state_of([], [str(tmp_path)]) == before
    (tmp_path / "tool").write_text("")
    assert state_of([], [str(tmp_path)]) != before
