"""A record behaves like the dataclass with the same arguments."""

import copy
import inspect
from dataclasses import FrozenInstanceError, astuple, dataclass, field, fields, replace
from typing import ClassVar

import pytest

from refcomp.foundation.records import field_names, record, values_of


@record
class Point:
    """A record with all kinds of fields."""

    x: int
    y: float = 1.0
    note: str = field(default="", compare=False)
    parts: list[int] = field(default_factory=list, repr=False)
    known: dict[str, int] = field(init=False, default_factory=dict)
    state: str = field(init=False, default="new")


@dataclass(frozen=True, slots=True)
class Plain:
    """The same, made by the standard library."""

    x: int
    y: float = 1.0
    note: str = field(default="", compare=False)
    parts: list[int] = field(default_factory=list, repr=False)
    known: dict[str, int] = field(init=False, default_factory=dict)
    state: str = field(init=False, default="new")


@record(frozen=False)
class Counter:
    """A record that can be changed."""

    count: int = 0


@record(eq=False)
class Identity:
    """A record that equals only itself."""

    name: str


def _arguments():
    return [((1,), {}), ((1, 2.0, "n", [3]), {}), ((), {"parts": [4], "x": 5})]


@pytest.mark.parametrize(("positional", "named"), _arguments())
def test_fields_and_text_are_those_of_the_dataclass(positional, named):
    ours, theirs = Point(*positional, **named), Plain(*positional, **named)
    assert astuple(ours) == astuple(theirs)
    assert repr(ours) == repr(theirs).replace("Plain", "Point")


def test_the_constructor_has_the_signature_of_the_dataclass():
    @record
    class Fresh:
        """Its constructor is not compiled yet."""

        x: int
        y: float = 1.0

    assert str(inspect.signature(Fresh)) == "(x: int, y: float = 1.0) -> None"
    assert str(inspect.signature(Point)) == str(inspect.signature(Plain))
    assert Point.__match_args__ == Plain.__match_args__
    assert [one.name for one in fields(Point)] == [one.name for one in fields(Plain)]


@pytest.mark.parametrize(
    ("positional", "named"), [((), {}), ((1, 2, 3, 4, 5), {}), ((1,), {"z": 2})]
)
def test_wrong_arguments_are_refused_with_the_message_of_the_dataclass(positional, named):
    with pytest.raises(TypeError) as ours:
        Point(*positional, **named)
    with pytest.raises(TypeError) as theirs:
        Plain(*positional, **named)
    assert str(ours.value) == str(theirs.value).replace("Plain", "Point")


def test_equality_and_hash_are_those_of_the_compared_fields():
    a, b, c = Point(1, parts=[2]), Point(1, note="other", parts=[2]), Point(1)
    assert a == b and a != c and a != Plain(1, parts=[2])
    assert a != (1, 1.0, "", [2], {}, "new")

    @record
    class Key:
        """All fields have a hash."""

        a: int
        b: str = field(default="", compare=False)

    assert len({Key(1), Key(1, "b"), Key(2)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)  # as the dataclass, since `parts` has none


def test_a_default_factory_makes_a_value_for_each_record():
    assert Point(1).parts is not Point(1).parts
    assert Point(1).known is not Point(1).known


def test_a_record_cannot_be_changed_unless_it_says_so():
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    with pytest.raises(AttributeError):
        counter.total = 1  # no such slot


def test_without_eq_a_record_equals_itself_only():
    a, b = Identity("a"), Identity("a")
    assert a == a and a != b and len({a, b}) == 2


def test_records_are_replaced_and_copied():
    point = Point(1, parts=[2])
    assert replace(point, x=3) == Point(3, parts=[2])
    for other in (copy.copy(point), copy.deepcopy(point)):
        assert other == point and other is not point
    assert copy.deepcopy(point).parts is not point.parts
    assert copy.copy(Counter(3)) == Counter(3)


def test_methods_of_the_class_stay():
    @record
    class Own:
        """A class that defines what a record would get."""

        a: int

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    assert repr(Own(1)) == "own" and Own(1) == Own(2) and hash(Own(1)) == 7


def test_a_class_with_its_own_equality_gets_the_hash_of_its_fields():
    @record
    class Own:
        """Like a dataclass, it has the hash None before."""

        a: int

        def __eq__(self, other):
            return True

    assert hash(Own(1)) == hash(Own(1)) != hash(Own(2))


def test_fields_are_inherited_and_checked_after_construction():
    @record
    class Named(Counter):
        """A record with a field of its base."""

        name: str = "n"

        def __post_init__(self):
            if self.count < 0:
                raise ValueError(self.name)

    assert astuple(Named(1)) == (1, "n")
    with pytest.raises(ValueError, match="n"):
        Named(-1)


def test_the_base_and_the_subclass_have_constructors_of_their_own():
    class Sub(Identity):
        """No record, but it inherits the constructor, which is not compiled yet."""

    assert Sub("a").name == "a"
    assert type(Identity("b")) is Identity


def test_the_constructor_belongs_to_the_module_of_the_class():
    assert Point.__init__.__globals__["__name__"] == Point.__module__ == __name__


def test_a_field_without_default_after_one_with_a_default_is_refused():
    @record
    class Wrong:
        """Python refuses such parameters."""

        a: int = 0
        b: int

    with pytest.raises(TypeError, match="field 'b' without a default follows one with a default"):
        Wrong(1, 2)


def test_a_record_that_holds_itself_has_a_text():
    counter = Counter()
    counter.count = counter
    assert repr(counter) == "Counter(count=...)"


def test_a_record_without_fields_and_one_with_a_weak_reference():
    @record
    class Empty:
        """No fields."""

    assert Empty() == Empty() and hash(Empty()) == hash(Empty()) and repr(Empty()).endswith("()")

    @record(weakref_slot=True, init=False)
    class Weak:
        """A class that is made by __new__."""

        a: int = 0

    assert "__weakref__" in Weak.__slots__ and Weak.__init__ is object.__init__


def test_fields_are_described_as_those_of_the_dataclass():
    described = [
        [(one.name, one.type, one.default, one.init, one.repr, one.compare) for one in fields(cls)]
        for cls in (Point, Plain)
    ]
    assert described[0] == described[1]
    assert field_names(Point) == field_names(Plain) == tuple(one.name for one in fields(Plain))

    class Sub(Point):
        """No record, but it inherits the fields."""

    assert field_names(Sub) == field_names(Point)


def test_attributes_of_the_class_are_no_fields():
    @record
    class Counted:
        """A record with an attribute of its class."""

        made: ClassVar[int] = 3
        a: int = 0

    assert field_names(Counted) == ("a",) and Counted.made == Counted().made == 3


def test_a_dataclass_extends_a_record_and_sees_its_fields():
    @dataclass
    class Named(Counter):
        """Its constructor takes the record's field first."""

        name: str = ""

    assert astuple(Named(2, "n")) == (2, "n")


def test_an_inherited_field_keeps_its_place_and_takes_the_new_default():
    @record(frozen=False)
    class Many(Counter):
        """A record with another default for a field of its base."""

        name: str = ""
        count: int = 7

    assert astuple(Many()) == (7, "") and Many.__slots__ == ("name",)


def test_a_default_that_all_records_would_share_is_refused():
    with pytest.raises(ValueError, match="field 'parts' of Shared needs a default_factory"):

        @record
        class Shared:
            """A list as default."""

            parts: list[int] = []  # noqa: RUF012


def test_a_base_that_is_a_dataclass_and_no_record_is_refused():
    with pytest.raises(TypeError, match="its base Plain is not a record"):

        @record
        class Wrong(Plain):
            """It would forget the fields of its base."""


def test_values_of_reads_any_number_of_attributes():
    point = Point(1, 2.0)
    assert values_of(())(point) == ()
    assert values_of(("x",))(point) == (1,)
    assert values_of(("x", "y"))(point) == (1, 2.0)
