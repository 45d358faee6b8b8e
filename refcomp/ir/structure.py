def structurally_equal(a: object, b: object) -> bool:
    raise NotImplementedError
