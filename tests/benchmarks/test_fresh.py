"""Fresh processes of benchmarks run as a user's would."""

from benchmarks.fresh import run_python


def test_processes_may_keep_compiled_modules(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("REFCOMP_NUM_THREADS", "1")
    text = "import os, sys; print(sys.dont_write_bytecode, os.environ['REFCOMP_NUM_THREADS'])"
    assert run_python(["-c", text], {"REFCOMP_NUM_THREADS": "2"}).split() == ["False", "2"]
