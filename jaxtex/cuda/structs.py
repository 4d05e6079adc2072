"""CUDA's structs and values as dataclasses that are pytrees, made by `struct` and `value`.

A struct starts zeroed, is filled in field by field, and compares by value. It may change until it is hashed, as a
static argument or a dictionary key. Then it refuses assignments, because a compiled function is found by its hash. A
value, such as an array or a texture object, never changes.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import dataclasses
import functools
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import jax
import numpy as np

from .._checks.numbers import is_array
from .._checks.words import check_keywords, nearest, no_attribute

Class = TypeVar("Class", bound="Struct")
Value = TypeVar("Value")


class OneLine:
    """The base of dataclasses that print one line: arrays by their dtype and shape, enumerations by their names."""

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # pyright: ignore[reportArgumentType]
        listed = (f"{field.name}={_shown(getattr(self, field.name))}" for field in fields)
        return f"{type(self).__name__}({', '.join(listed)})"


class Struct(OneLine):
    """The base of structs, whose subclasses have the decorator `struct`."""

    if not TYPE_CHECKING:  # checkers of types know the fields

        def __setattr__(self, name, value):
            names = [field.name for field in dataclasses.fields(self)]
            if name not in names:
                raise no_field(type(self).__name__, name, names)
            check_mutable(self, f"its field {name}")
            value = int(value) if isinstance(value, np.integer) else value
            object.__setattr__(self, name, self._converted(name, value))

        def __getattr__(self, name):
            fields = [field.name for field in dataclasses.fields(self)]
            members = [member for member in vars(type(self)) if not member.startswith("_")]
            raise no_field(type(self).__name__, name, dict.fromkeys((*fields, *members)))

    def _converted(self, name: str, value: Any) -> Any:
        """The value that is stored for a field."""
        return value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        return isinstance(other, Struct) and same(_values(self), _values(other))

    def __hash__(self) -> int:
        object.__setattr__(self, "_hashed", True)
        return hash((type(self).__name__, hashable(_values(self))))

    def frozen(self: Class) -> Class:
        """A copy that refuses assignments."""
        copy = copy_of(self)
        hash(copy)
        return copy


class TupleStruct(Struct):
    """A struct that unpacks and compares like a tuple of its fields."""

    def __iter__(self) -> Iterator[Any]:
        return iter(_values(self))

    def __len__(self) -> int:
        return len(_values(self))

    def __getitem__(self, index: Any) -> Any:
        return _values(self)[index]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return same(_values(self), tuple(other)) if isinstance(other, type(self) | tuple) else NotImplemented

    def __hash__(self) -> int:
        object.__setattr__(self, "_hashed", True)
        return hash(hashable(_values(self)))


class Components(Sequence[Any]):
    """The elements of an array in a struct, such as ``addressMode``: a tuple whose elements may be assigned.

    Args:
        items: the elements.
    """

    def __init__(self, items: Sequence[Any]):
        self._items = list(items)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise no_attribute(f"an array in a struct has no field {name!r}; assign to its elements by number.", name)
        object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return tuple(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __setitem__(self, index: int, value: Any) -> None:
        check_mutable(self, f"its element {index}")
        self._items[index] = value

    def __eq__(self, other: object) -> bool:
        return same(tuple(self), tuple(other)) if isinstance(other, Components | tuple) else NotImplemented

    def __hash__(self) -> int:
        self._hashed = True
        return hash(hashable(tuple(self)))

    def __repr__(self) -> str:
        return repr(tuple(self))


def no_field(struct: str, name: str, names: Collection[str]) -> AttributeError:
    """The error of a field that a struct does not have."""
    if name.startswith("_"):  # those that Python, and copies and pickles, look for
        return AttributeError(f"{struct}: there is no field {name!r}.")
    meant = nearest(name, names)
    suggestion = f" Did you mean {meant}?" if meant else ""
    return no_attribute(f"{struct}: there is no field {name!r}, expected one of {', '.join(names)}.{suggestion}", name)


def copy_of(value: Class) -> Class:
    """A copy of a struct, which may change."""
    return dataclasses.replace(value)  # pyright: ignore[reportArgumentType, reportReturnType]


def snapshot(value: Any) -> Any:
    """The present values of a struct, as a tuple."""
    if isinstance(value, Struct):
        return tuple(snapshot(field) for field in _values(value))
    return _plain(value)


def check_mutable(value: object, part: str) -> None:
    """Refuses an assignment to a struct that was hashed."""
    if vars(value).get("_hashed"):
        raise AttributeError(
            f"{type(value).__name__}: {part} is assigned after the struct was hashed, as a static argument or as part "
            f"of an array; make a copy with dataclasses.replace and assign to that."
        )


def same(a: Any, b: Any) -> bool:
    """Whether two values of fields are equal. Arrays are if they are one object: comparing numbers would read them."""
    if a is b:
        return True
    if is_array(a) or is_array(b):
        return False
    if isinstance(a, tuple | Components) and isinstance(b, tuple | Components):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return bool(a == b)


def hashable(value: Any) -> Hashable:
    """A value of a field for a hash. All arrays have one hash."""
    if isinstance(value, tuple):
        return tuple(hashable(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return "array" if is_array(value) or not isinstance(value, Hashable) else value


@dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field,))
def struct(*children: str) -> Callable[[type[Class]], type[Class]]:
    """Makes a class a dataclass and a pytree. The fields in `children` are its children; all others are static."""

    def register(cls: type[Class]) -> type[Class]:
        cls = dataclasses.dataclass(eq=False, repr=False)(cls)
        names = [field.name for field in dataclasses.fields(cls)]  # pyright: ignore[reportArgumentType]
        static, init = [name for name in names if name not in children], cls.__init__

        def remedy(keyword: str) -> str | None:
            meant = nearest(keyword, names)
            return f"pass {meant}" if meant else None

        @functools.wraps(init)
        def checked(self: Class, *args: Any, **fields: Any) -> None:
            check_keywords(cls.__name__, fields, names, remedy)
            init(self, *args, **fields)

        cls.__init__ = checked

        def flatten(value: Class) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            fields = (getattr(value, name) for name in static)
            fixed = tuple(field.frozen() if isinstance(field, Struct) else _plain(field) for field in fields)
            return tuple(_plain(getattr(value, name)) for name in children), fixed

        def flatten_with_keys(value: Class) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            leaves, fixed = flatten(value)
            return tuple((jax.tree_util.GetAttrKey(name), leaf) for name, leaf in zip(children, leaves)), fixed

        def unflatten(fixed: tuple[Any, ...], leaves: Any) -> Class:
            value = object.__new__(cls)
            for name, field in (*zip(static, fixed), *zip(children, leaves)):
                # A static field is shared with the tree, so the struct gets a copy that may change.
                copied = copy_of(field) if name in static and isinstance(field, Struct) else field
                object.__setattr__(value, name, value._converted(name, copied))  # pyright: ignore[reportPrivateUsage]
            return value

        jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
        return cls

    return register


@dataclass_transform(eq_default=False, frozen_default=True)
def value(*children: str) -> Callable[[type[Value]], type[Value]]:
    """Makes a class a frozen dataclass and a pytree. The fields in `children` hold arrays; all others are static."""

    def register(cls: type[Value]) -> type[Value]:
        cls = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        static = [field.name for field in dataclasses.fields(cls) if field.name not in children]  # pyright: ignore[reportArgumentType]
        return jax.tree_util.register_dataclass(cls, data_fields=list(children), meta_fields=static)

    return register


def _shown(field: Any) -> str:
    if is_array(field):
        return f"{field.dtype}{list(field.shape)}".replace(" ", "")
    if isinstance(field, tuple | Components):
        return f"({', '.join(map(_shown, field))})"
    return f"{type(field).__name__}.{field.name}" if isinstance(field, Enum) else repr(field)


def _values(value: Struct) -> tuple[Any, ...]:
    return tuple(getattr(value, field.name) for field in dataclasses.fields(value))  # pyright: ignore[reportArgumentType]


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, Components) else value
