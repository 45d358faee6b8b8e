"""The tools that translate for this host: compiled text is loaded, widths fill bytes."""

import pytest

from refcomp.driver.host_tools import host_tools, kernel_tools
from refcomp.foundation.errors import ToolchainError


@pytest.mark.llvm
@pytest.mark.parametrize("tools", [host_tools, kernel_tools])
def test_text_is_compiled_and_loaded(tools):
    library = tools().compile("define i64 @answer(ptr %p) {\n  ret i64 42\n}\n")
    assert library["answer"](None) == 42


@pytest.mark.llvm
def test_wrong_text_is_an_error_of_the_toolchain():
    with pytest.raises(ToolchainError):
        host_tools().compile("define nothing")


@pytest.mark.llvm
def test_vectors_have_whole_bytes_of_masks():
    assert host_tools().width() % 8 == 0
