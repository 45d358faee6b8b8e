from refcomp.runtime.files.damage import damaged


def test_a_damaged_file_is_named_with_the_reason():
    error = damaged("add.module", "it ends early")
    assert str(error).startswith("add.module is damaged\n  why: it ends early\n")
