"""Several texts of the user's own LLVM IR stay apart, as if each stood in a file of its own."""

import pytest

from refcomp.codegen.llvm.separate_imports import separate
from refcomp.foundation.errors import UserError

SETUP = "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "


def test_a_single_text_stays():
    text = "@n = internal global i32 1"
    assert separate([text])[0] is text and separate([]) == []


def test_names_of_one_text_are_unique_where_they_clash():
    first = """%struct.S = type { i32 }
@.str = private constant [2 x i8] c"@n"
@n = internal global i32 1"""
    second = """%struct.S = type { float }
@n = internal global i32 2
@m = internal global %struct.S zeroinitializer ; @n"""
    one, two = separate([first, second])
    assert one.splitlines() == [
        "%struct.S.text1 = type { i32 }",
        '@.str = private constant [2 x i8] c"@n"',
        "@n.text1 = internal global i32 1",
    ]
    assert two.splitlines() == [
        "%struct.S.text2 = type { float }",
        "@n.text2 = internal global i32 2",
        "@m = internal global %struct.S.text2 zeroinitializer ; @n",
    ]


def test_a_function_for_others_keeps_its_name():
    texts = separate(["define internal float @f() {", "define float @f() {"])
    assert texts == ["define internal float @f.text1() {\n", "define float @f() {\n"]


def test_what_another_text_defines_is_not_declared_again():
    texts = separate(
        [
            "@n = external global i32\n@e = external global i32",
            "@n = global i32 1\n@e = external global i32",
        ]
    )
    assert texts[0].splitlines() == ["; @n = external global i32", "@e = external global i32"]
    assert texts[1].splitlines() == ["@n = global i32 1", "; @e = external global i32"]


def test_variables_for_all_others_may_not_clash():
    with pytest.raises(UserError, match=r"two imported texts define the variable n\n(.|\n)*static"):
        separate(["@n = global i32 1", "@n = dso_local global i32 2"])


def test_lists_are_joined_and_flags_are_those_of_one_text():
    texts = separate(
        [
            SETUP + "[{ i32, ptr, ptr } { i32 1, ptr @a, ptr null }]\n!llvm.module.flags = !{!0}",
            SETUP.replace("1 x", "0 x") + "zeroinitializer",
            SETUP + "[{ i32, ptr, ptr } { i32 2, ptr @b, ptr null }]\n!llvm.module.flags = !{!0}",
        ]
    )
    first, flags = texts[0].splitlines()
    assert first == (
        "@llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] "
        "[{ i32, ptr, ptr } { i32 1, ptr @a, ptr null }, "
        "{ i32, ptr, ptr } { i32 2, ptr @b, ptr null }]"
    )
    assert flags == "!llvm.module.flags = !{!0}"
    assert all(line.startswith("; ") for text in texts[1:] for line in text.splitlines())
    empty = SETUP.replace("1 x", "0 x") + "zeroinitializer"
    assert separate([empty, empty])[0].strip() == empty
