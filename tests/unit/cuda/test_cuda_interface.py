"""`jaxtex.cuda` as a whole: its rooms import in one direction, and its public names are typed."""

import dataclasses
import inspect
import pickle
import typing

from jaxtex import cuda
from tests.house.test_house import SOURCES, imports

# Rooms of the package, each with the rooms that it may import from; "" is what they share.
ROOMS = {"": ("",), "memory": ("",), "textures": ("", "memory"), "surfaces": ("", "memory")}
ROOMS["ptx"] = ("", "memory", "textures", "surfaces")
CALLABLES = [name for name in cuda.__all__ if callable(getattr(cuda, name))]


def room(module):
    """The room of a module of `jaxtex.cuda`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""


def test_rooms_import_in_one_direction():
    modules = [module for module in SOURCES if module.startswith("cuda.")]
    assert {room(module) for module in modules} == set(ROOMS)
    backward = [
        f"{module} imports {target}"
        for module in modules
        for level, target in imports(module)
        if level and target.startswith("cuda") and room(target) not in (*ROOMS[room(module)], room(module))
    ]
    assert not backward


def functions_of(value):
    """The functions whose annotations a caller of a public value meets, each with its parameters."""
    if not inspect.isclass(value):
        return [value]
    members = [
        member for base in value.__mro__ if base.__module__.startswith("jaxtex") for member in vars(base).items()
    ]
    own = {name: member for name, member in reversed(members) if not name.startswith("_") or name == "__init__"}
    functions = [getattr(member, "fget", getattr(member, "__func__", member)) for member in own.values()]
    return [function for function in functions if inspect.isfunction(function)]


def contains_any(annotation):
    return annotation is typing.Any or any(map(contains_any, typing.get_args(annotation)))


def test_public_names_are_typed():
    untyped = []
    for name in CALLABLES:
        value = getattr(cuda, name)
        for function in functions_of(value):
            hints = typing.get_type_hints(function)
            parameters = [
                parameter for parameter in inspect.signature(function).parameters if parameter not in ("self", "cls")
            ]
            expected = parameters if function.__name__ == "__init__" else [*parameters, "return"]
            untyped += [f"{name}.{function.__name__}: {part}" for part in expected if part not in hints]
            untyped += [f"{name}.{function.__name__}: {part}" for part, hint in hints.items() if contains_any(hint)]
        if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
            hints = typing.get_type_hints(value)
            untyped += [f"{name}.{field}" for field, hint in hints.items() if contains_any(hint)]
    assert not untyped


def test_public_names_reach_other_processes():
    for name in CALLABLES:
        assert pickle.loads(pickle.dumps(getattr(cuda, name))) is getattr(cuda, name), name
