"""The tools of saved modules are those that were registered last."""

import pytest

from refcomp.runtime.files import code_tools


def test_the_last_tools_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_tools, "_TOOLS", [])
    assert code_tools.code_tools() is None
    for answer in (b"1", b"2"):
        code_tools.register_code_tools(lambda text, target, suffix, answer=answer: answer)
    tools = code_tools.code_tools()
    assert tools is not None and tools("", "llvm", ".o") == b"2"


def test_the_last_describer_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_tools, "_DESCRIBERS", [])
    assert code_tools.describer() is None
    for answer in ("1", "2"):
        code_tools.register_describer(lambda text, description, answer=answer: text + answer)
    describe = code_tools.describer()
    assert describe is not None and describe("text", b"") == "text2"
