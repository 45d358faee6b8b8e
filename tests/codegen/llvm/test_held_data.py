from refcomp.codegen.llvm.held_data import print_held_data


def test_each_byte_is_spelled():
    text = print_held_data(b'a"\\\0', triple="t", layout="l")
    assert 'constant [4 x i8] c"\\61\\22\\5c\\00"' in text
    assert "@refcomp_device_code_size = constant i64 4" in text
    assert 'target triple = "t"' in text
