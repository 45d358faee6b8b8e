import threading

import pytest

import refcomp.driver.backends  # noqa: F401  (registers the kinds)
from refcomp.foundation import target, triples
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import (
    Target,
    as_target,
    current_target,
    foreign_triple,
    is_system_lib,
    kind_of,
    limits_of,
    register_kind,
    target_kinds,
    target_or_current,
    with_host,
)
from refcomp.foundation.target_kind import DeviceLimits, TargetKind


def test_reads_kind_and_options():
    parsed = as_target("llvm -mcpu=znver4")
    assert (parsed.kind, parsed.option("mcpu", "native")) == ("llvm", "znver4")
    assert parsed.option("passes", "default") == "default"


def test_text_round_trips_and_order_of_options_does_not_matter():
    first = as_target("llvm -mcpu=znver4 -passes=sroa")
    assert first == as_target("llvm -passes=sroa -mcpu=znver4")
    assert as_target(str(first)) == first
    assert as_target(first) is first


def test_unknown_kind_lists_the_known_ones():
    with pytest.raises(UserError, match="unknown target 'vulkan'(.|\n)*llvm: machine code"):
        as_target("vulkan")
    for name in ("gfx942", "rocm:gfx942"):
        with pytest.raises(UserError, match="what to do: write rocm -mcpu=gfx942; use one of"):
            as_target(name)
    with pytest.raises(UserError, match="unknown target ''"):
        as_target("")


@pytest.mark.parametrize("word", ["-speed=9", "mcpu=x", "-mcpu", "-mcpu="])
def test_unknown_option_lists_the_options(word):
    with pytest.raises(UserError, match="no option(.|\n)*-mcpu=... "):
        as_target(f"llvm {word}")


def test_users_register_kinds(monkeypatch):
    monkeypatch.setattr(target, "_KINDS", dict(target._KINDS))
    register_kind(TargetKind("mine", "a target of a user's own", {"level": "how much"}))
    assert as_target("mine -level=3").option("level", "") == "3"
    assert "mine" in [kind.name for kind in target_kinds()]
    assert kind_of("mine -level=3") is kind_of(as_target("mine")) is target._KINDS["mine"]
    with pytest.raises(UserError, match="'mine' is registered already"):
        register_kind(TargetKind("mine", "", {}))


@pytest.mark.parametrize("value", [None, 3, ["llvm"], " "])
def test_a_target_is_a_text(value):
    with pytest.raises(UserError, match="unknown target"):
        as_target(value)


def test_the_constructor_reads_a_whole_text():
    target = Target("llvm -mcpu=znver4")
    assert target == as_target("llvm -mcpu=znver4")
    assert (target.kind, target.option("mcpu", "native")) == ("llvm", "znver4")
    assert target.keys == ("llvm", "cpu")
    assert str(Target("rocm -threads=64", (("mcpu", "gfx942"),))) == "rocm -mcpu=gfx942 -threads=64"
    with pytest.raises(UserError, match="unknown target ''"):
        Target("")
    with pytest.raises(UserError, match='3 is not a target(.|\n)*such as "llvm"'):
        Target(3)
    with pytest.raises(UserError, match="unknown target 'vulkan'"):
        _ = Target("vulkan").keys


def test_an_option_is_given_once():
    with pytest.raises(UserError, match="has the option -mcpu twice(.|\n)*write it once"):
        as_target("llvm -mcpu=znver4 -mcpu=skylake")


def test_limits_are_those_of_the_device_that_is_there_or_of_the_kind():
    assert limits_of(as_target("rocm")).threads == 1024
    assert limits_of(as_target("opencl")).features >= {"cl_khr_fp64"}
    found = DeviceLimits((64, 64, 1), 64, 1000, frozenset({"x"}), (10, 10, 10))
    assert limits_of(as_target("opencl"), found) is not None
    assert limits_of(as_target("opencl"), found) == found


def test_options_say_more_than_the_device():
    found = DeviceLimits((64, 64, 1), 64, 1000)
    limits = limits_of(as_target("opencl -threads=128 -shared_bytes=500"), found)
    assert (limits.threads, limits.shared_bytes) == (128, 500)
    assert limits.threads_per_axis == (128, 128, 128)
    limits = limits_of(as_target("opencl -threads=32"), found)
    assert (limits.threads, limits.threads_per_axis) == (32, (64, 64, 1))


@pytest.mark.parametrize("option", ["threads=0", "shared_bytes=-1", "threads=many", "threads=1.5"])
def test_limits_are_positive_numbers(option):
    with pytest.raises(UserError, match=f"-{option} is not a positive number"):
        limits_of(as_target(f"rocm -{option}"))


def test_a_target_without_a_device_has_no_limits():
    with pytest.raises(
        UserError, match="the target llvm -mcpu=x has no device(.|\n)*opencl or rocm"
    ):
        limits_of(as_target("llvm -mcpu=x"))


def test_with_statements_nest_and_end():
    assert current_target() is None
    with as_target("llvm -mcpu=znver4") as outer:
        with Target("rocm -mcpu=gfx942") as inner:
            assert inner == current_target() == as_target("rocm -mcpu=gfx942")
        assert current_target() is outer
        with pytest.raises(RuntimeError), outer:
            raise RuntimeError
        assert current_target() is outer
    assert current_target() is None
    with pytest.raises(
        UserError, match="no target is the current one(.|\n)*with refcomp.target.create"
    ):
        current_target(allow_none=False)


def test_each_thread_has_its_own_current_target():
    seen = []
    with as_target("opencl"):
        thread = threading.Thread(target=lambda: seen.append(current_target()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_a_target_that_cannot_be_read_does_not_become_current():
    with pytest.raises(UserError, match="unknown target 'vulkan'"), Target("vulkan"):
        pass
    assert current_target() is None
    assert target_or_current(None) == as_target("llvm")
    with as_target("opencl"):
        assert target_or_current(None).kind == "opencl"
        assert target_or_current("rocm").kind == "rocm"


@pytest.mark.parametrize(
    "text, keys",
    [
        ("llvm", ("llvm", "cpu")),
        ("interp", ("interp", "cpu")),
        ("cuda", ("cuda", "gpu")),
        ("nvptx", ("nvptx", "cuda", "gpu")),
        ("rocm", ("rocm", "gpu")),
        ("opencl", ("opencl", "gpu")),
    ],
)
def test_keys_go_from_special_to_general(text, keys):
    assert as_target(text).keys == keys


@pytest.fixture
def on_x86(monkeypatch):
    monkeypatch.setattr(triples, "machine", lambda: "x86_64")


@pytest.mark.usefixtures("on_x86")
def test_the_classic_word_for_another_machine():
    target = as_target("llvm -target=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+neon")
    assert str(target) == "llvm -mattr=+neon -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu"
    assert target == as_target(str(target))
    assert foreign_triple(target) == "aarch64-linux-gnu"
    assert foreign_triple(as_target("llvm -mtriple=x86_64-linux-gnu")) == ""
    assert foreign_triple(as_target("llvm")) == foreign_triple(as_target("rocm")) == ""
    with pytest.raises(UserError, match="has the option -mtriple twice"):
        as_target("llvm -target=aarch64-linux-gnu -mtriple=aarch64-linux-gnu")
    with pytest.raises(UserError, match="target rocm has no option '-target=x'"):
        as_target("rocm -target=x")


@pytest.mark.usefixtures("on_x86")
@pytest.mark.parametrize(
    "options, message",
    [
        ("-mtriple=wasm32", "no code can be made for the machine 'wasm32'"),
        ("-mattr=+neon", "option of code for another machine"),
        ("-mtriple=aarch64-linux-gnu -libs=a.so", "libraries of this machine and another"),
        ("-mtriple=aarch64-linux-gnu -mcpu=native", "processor of this machine and another"),
    ],
)
def test_options_that_contradict_a_machine(options, message):
    with pytest.raises(UserError, match=message):
        as_target(f"llvm {options}")


@pytest.mark.parametrize("word", ["-system-lib", "--system-lib", "-system-lib=1", "--system-lib=1"])
def test_an_option_that_stands_alone_is_on(word):
    target = as_target(f"llvm {word} -mcpu=znver4")
    assert str(target) == "llvm -mcpu=znver4 -system-lib=1"
    assert as_target(str(target)) == target
    assert is_system_lib(str(target))


def test_the_option_is_off_without_it_and_by_0():
    assert not is_system_lib("llvm")
    assert not is_system_lib(str(as_target("llvm -system-lib=0")))


@pytest.mark.parametrize(
    "text, message",
    [
        ("llvm -system-lib=yes", r"'-system-lib=yes' is neither on nor off(.|\n)*-system-lib=0 to"),
        ("llvm -system-lib=", "'-system-lib=' is neither on nor off"),
        ("llvm system-lib", "target llvm has no option 'system-lib'"),
        ("llvm ---system-lib", "target llvm has no option '---system-lib'"),
        ("llvm -system-lib --system-lib", "has the option -system-lib twice"),
        ("interp -system-lib", "target interp has no option '-system-lib'"),
    ],
)
def test_other_spellings_of_the_option_are_refused(text, message):
    with pytest.raises(UserError, match=message):
        as_target(text)


@pytest.mark.parametrize(
    "target, host, expected",
    [
        ("opencl", None, "opencl"),
        ("opencl", "llvm", "opencl"),
        ("opencl", "llvm -system-lib=0", "opencl"),
        ("rocm -mcpu=gfx942", "llvm --system-lib", "rocm -mcpu=gfx942 -system-lib=1"),
        ("llvm -system-lib=0", "llvm -system-lib", "llvm -system-lib=1"),
        ("cuda -system-lib -arch=sm_80", "llvm -system-lib", "cuda -arch=sm_80 -system-lib=1"),
        ("nvptx -system-lib", "llvm", "nvptx -system-lib=1"),
    ],
)
def test_the_option_of_the_host_is_that_of_the_target(target, host, expected):
    assert str(with_host(as_target(target), host)) == expected


def test_targets_of_hosts_that_are_refused():
    with pytest.raises(UserError, match='cannot be compiled for opencl(.|\n)*"llvm"'):
        with_host(as_target("llvm"), "opencl")
    with pytest.raises(UserError, match="target interp has no option '-system-lib'"):
        with_host(as_target("interp"), "llvm -system-lib")


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        ("stackvm", "write interp, which needs no tools either; use one of"),
        ("c", "write llvm: module.save writes LLVM IR, assembly and objects; use one of"),
        ("metal", "write opencl; use one of"),
        ("ext_dev", "call refcomp.register_backend to add a target; use one of"),
    ],
)
def test_classic_kinds_of_targets_are_refused_with_what_to_write(target, advice):
    with pytest.raises(UserError, match=f"unknown target '{target}'") as info:
        as_target(target)
    assert advice in info.value.remedy


@pytest.mark.parametrize("word", ["-device=mali", "-model=1080ti", "-keys=gpu"])
def test_options_that_chose_tuned_schedules_are_left_out(word):
    with pytest.raises(UserError, match=f"target opencl has no option '{word}'") as info:
        as_target(f"opencl {word}")
    assert (
        info.value.remedy == "leave it out: it chose tuned schedules, which refcomp does not have"
    )
