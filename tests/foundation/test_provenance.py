from pathlib import Path

import refcomp
from refcomp.foundation.provenance import caller_line


def test_names_the_line_outside_the_package():
    file, number = caller_line().rsplit(":", 1)
    assert file == __file__
    assert "caller_line()" in Path(__file__).read_text().splitlines()[int(number) - 1]


def test_frames_of_the_package_are_passed_over():
    tensor = refcomp.placeholder((4,), name="A")  # the line the message must name
    number = int(tensor.op.line.rsplit(":", 1)[1])
    assert "the line the message must name" in Path(__file__).read_text().splitlines()[number - 1]
