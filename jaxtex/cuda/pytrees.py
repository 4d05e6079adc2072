"""Frozen dataclasses as pytrees: the named fields hold arrays; all other fields are static."""

# pyright: strict

import dataclasses
from collections.abc import Callable
from typing import TypeVar

import jax

Class = TypeVar("Class")


def pytree(*children: str) -> Callable[[type[Class]], type[Class]]:
    """Registers a dataclass as a pytree. The fields named in `children` are its children, and all others are static."""

    def register(cls: type[Class]) -> type[Class]:
        fields = dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
        static = [field.name for field in fields if field.name not in children]
        return jax.tree_util.register_dataclass(cls, data_fields=list(children), meta_fields=static)

    return register
