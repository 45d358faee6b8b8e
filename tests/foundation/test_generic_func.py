import pytest

from refcomp.foundation import generic_func as rooms
from refcomp.foundation.errors import UserError
from refcomp.foundation.generic_func import generic_func, override_native_generic_func
from refcomp.foundation.target import Target


def chooser():
    @generic_func
    def choose(text, end="."):
        """Return a text."""
        return f"default {text}{end}"

    return choose


def test_the_first_key_of_the_current_target_with_a_variant_decides():
    choose = chooser()
    assert choose.__name__ == "choose" and choose.__doc__ == "Return a text."
    choose.register("gpu", lambda text, end=".": f"gpu {text}{end}")
    assert choose("x") == "default x."
    with Target("nvptx"):
        assert choose("x", end="!") == "gpu x!"
    choose.register(["cuda", "opencl"])(lambda text, end=".": f"cuda {text}{end}")
    with Target("nvptx"):
        assert choose("x") == "cuda x."
        with Target("llvm"):
            assert choose("x") == "default x."
        assert choose("x") == "cuda x."
    with Target("rocm"):
        assert choose("x") == "gpu x."
    assert choose.fdefault("x") == "default x."
    assert repr(choose) == "<generic function choose for: gpu, cuda, opencl>"


def test_a_variant_is_replaced_only_on_request():
    choose = chooser()
    choose.register("cpu", lambda text: 1)
    with pytest.raises(UserError, match="has a variant for 'cpu' already(.|\n)*override=True"):
        choose.register(["rocm", "cpu"], lambda text: 2)
    assert list(choose.variants) == ["cpu"]
    choose.register("cpu", lambda text: 2, override=True)
    with Target("llvm"):
        assert choose("x") == 2


def test_variants_for_devices_that_only_the_classic_system_has_may_stay():
    choose = chooser()
    choose.register(["arm_cpu", "mali"], lambda text: 1)
    with Target("llvm"):
        assert choose("x") == "default x."


def test_wrong_keys_and_variants_are_refused():
    choose = chooser()
    with pytest.raises(UserError, match="no target has the key 'rocn'(.|\n)*did you mean rocm"):
        choose.register("rocn")
    for wrong in ([], None, 3):
        with pytest.raises(UserError, match="is not a key of targets"):
            choose.register(wrong)
    with pytest.raises(UserError, match="no target has the key 3"):
        choose.register([3])
    with pytest.raises(UserError, match="4 cannot be a variant for cpu"):
        choose.register("cpu", 4)
    for wrong in (3, int):
        with pytest.raises(UserError, match="is not a function(.|\n)*@refcomp.generic_func"):
            generic_func(wrong)


def test_functions_of_one_name_share_variants(monkeypatch):
    monkeypatch.setattr(rooms, "_NAMED", {})
    first = override_native_generic_func("tests.f")(lambda: "first")
    first.register("gpu", lambda: "gpu")
    second = override_native_generic_func("tests.f")(lambda: "second")
    assert (first(), second()) == ("first", "second")
    second.register("cpu", lambda: "cpu")
    with Target("rocm"):
        assert second() == "gpu"
    with Target("llvm"):
        assert (first(), second()) == ("cpu", "cpu")
    with pytest.raises(UserError, match="3 is not a name for a generic function"):
        override_native_generic_func(3)


class Tuned:
    factor = 8

    @generic_func
    def lanes(self, count=1):
        """Return lanes."""
        return self.factor * count

    @lanes.register("gpu")
    def lanes_of_gpu(self, count=1):
        return -self.factor * count


def test_in_a_class_it_is_a_method():
    tuned = Tuned()
    tuned.factor = 3
    assert tuned.lanes(2) == 6
    assert Tuned.lanes(tuned) == 3
    with Target("opencl"):
        assert tuned.lanes(count=2) == -6
    assert list(Tuned.lanes.variants) == list(tuned.lanes.variants) == ["gpu"]
    assert tuned.lanes.__doc__ == "Return lanes." and tuned.lanes.__self__ is tuned
