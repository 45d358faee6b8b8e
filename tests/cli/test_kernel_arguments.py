"""Arguments of `refcomp emulate --arg`; more of them in tests/cli/test_emulate.py."""

import numpy as np
import pytest

from refcomp.cli.kernel_arguments import ARGUMENT_FORMS, FORMS_WITH_LOCAL, read_arguments
from refcomp.foundation.errors import UserError
from refcomp.foundation.local_memory import LocalMemory


def test_numbers_and_local_memory():
    number, flag, local = read_arguments(["n:f16=0.5", "f:u8=0xff", "local:0x10"], FORMS_WITH_LOCAL)
    assert (number.name, number.path) == ("n", None)
    assert number.value == np.float16(0.5) and number.value.dtype == np.float16
    assert flag.value == 255 and local.value == LocalMemory(16)


def test_only_what_is_written_may_be_written(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6, dtype=">i4").reshape(2, 3).T)
    read, written = read_arguments([str(path), f"out:{path}"], ARGUMENT_FORMS)
    assert not read.value.flags.writeable and written.value.flags.writeable
    assert (read.path, written.path) == (None, str(path))
    assert read.value.flags.c_contiguous and read.value.dtype == np.dtype("=i4")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n:i8=300", "--arg n:i8=300 is not a number of that type"),
        ("local:-1", "--arg local:-1 is not local memory"),
        ("a.npy", "a.npy cannot be read"),
    ],
)
def test_what_is_refused_says_what_an_argument_can_be(text, message):
    for forms in (ARGUMENT_FORMS, FORMS_WITH_LOCAL):
        with pytest.raises(UserError, match=message) as told:
            read_arguments([text], forms)
        assert told.value.remedy == forms
