"""`python -m tests.house.public_api --write`: all public names with their signatures, in `tests/data/public_api.txt`.

Public are the names in `__all__` of the modules below, the public members of their classes, and the commands and
options of the command line. Types of parameters are not written: they are no part of a call. `--release` keeps the
list under the version of `jaxtex.__version__` too, when that version is published: later changes are those since then.
"""

import argparse
import enum
import importlib
import inspect
import re
from pathlib import Path

import jaxtex
from jaxtex.cli.commands import COMMANDS, command_parser

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "data"
CURRENT = FOLDER / "public_api.txt"
MODULES = ("", ".cuda", ".layers", ".layers.equinox", ".layers.nnx", ".ndimage", ".nn", ".rays", ".sharded")
MODULES += (".unit", ".warp")
# The modules that define the names of `jaxtex`.
DEFINING = (".compressed", ".derivatives", ".exports", ".fused", ".mipmaps", ".modes", ".sampler", ".sampling")
DEFINING += (".splines", ".surface", ".texture")
# What public classes inherit from classes of other packages is not listed.
OURS = "jaxtex"


class Shown:
    """A default value as it stands in a signature, the same on every version of Python."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        if isinstance(self.value, enum.Enum):
            return f"{type(self.value).__name__}.{self.value.name}"
        if self.value == jaxtex.Sampler():
            return "Sampler()"
        if isinstance(self.value, tuple):
            return repr(tuple(map(Shown, self.value)))
        return self.value.__name__ if inspect.isclass(self.value) else repr(self.value)


def parameters_of(function):
    """The parameters of a function or a class, by name."""
    parameters = {**inspect.signature(function).parameters}
    if inspect.isclass(function) and [*parameters] == ["args", "kwargs"]:
        # A metaclass hides them, as that of Flax's modules does.
        parameters = {**inspect.signature(function.__init__).parameters}
        del parameters["self"]
    return parameters


def signature_of(function):
    """The parameters of a function without their types."""
    empty, parameters = inspect.Parameter.empty, parameters_of(function).values()
    shown = [p.replace(annotation=empty, default=empty if p.default is empty else Shown(p.default)) for p in parameters]
    return str(inspect.Signature(shown))


def members_of(name, value):
    for owner in reversed(value.__mro__):
        if owner.__module__.split(".")[0] != OURS:
            continue
        for member, found in vars(owner).items():
            bare = inspect.unwrap(getattr(found, "__func__", found))
            if member.startswith("_"):
                continue
            if inspect.isfunction(bare):
                yield f"{name}.{member}{signature_of(bare)}"
            elif isinstance(found, property) or hasattr(found, "func"):
                yield f"{name}.{member}"


def lines_of(name, value):
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return [name, *(f"{name}.{member} = {found.value!r}" for member, found in value.__members__.items())]
    if inspect.isclass(value):
        return [f"{name}{signature_of(value)}", *sorted(set(members_of(name, value)))]
    return [f"{name}{signature_of(value)}" if callable(value) else name]


def commands():
    """A line for each command, and one for each of its options."""
    for name in COMMANDS:
        yield f"$ jaxtex {name}"
        for action in command_parser(name)._actions:
            for option in sorted(action.option_strings):
                choices = f" {{{','.join(map(str, action.choices))}}}" if action.choices else ""
                yield f"$ jaxtex {name} {option}{choices}"


def names_in(module):
    """The public names of a module: `__all__`, or what it defines."""
    defined = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return getattr(module, "__all__", [name for name in defined if not name.startswith("_")])


def public_api():
    """All lines, sorted."""
    lines = [*commands()]
    for module in MODULES:
        imported = importlib.import_module(f"jaxtex{module}")
        for name in names_in(imported):
            lines += lines_of(f"{imported.__name__}.{name}", getattr(imported, name))
    return sorted(set(lines))


def name_of(line):
    """The name that a line is about: what stands before its parameters, its value or its choices."""
    return re.split(r"\(| = | \{", line)[0]


def room_of(name):
    """The module of a name, or the command of an option."""
    if name.startswith("$ "):
        return " ".join(name.split()[1:3])
    return max((f"jaxtex{module}" for module in MODULES if name.startswith(f"jaxtex{module}.")), key=len)


def words_of(name):
    """The words by which a changelog may name a public name: its own, or that of its class."""
    room = room_of(name)
    if name.startswith("$ "):
        return name.split()[3:] or [room]
    return name.removeprefix(f"{room}.").split(".")


def recorded():
    """The last published version that has a list, and its lines."""
    paths = {tuple(map(int, path.stem.split("_")[-1].split("."))): path for path in FOLDER.glob("public_api_*.txt")}
    newest = max(paths)
    return ".".join(map(str, newest)), paths[newest].read_text().splitlines()


def since(version, changelog):
    """What the changelog says about the versions after this one."""
    text, found, _ = changelog.partition(f"\n## [{version}]")
    assert found, f"CHANGELOG.md has no section [{version}]"
    return text[text.index("\n## [") :]


def unnamed(lines, before, text):
    """The names that were added, removed or changed since a list, and that a changelog does not name.

    A module or a command that the list has not stands for all names in it.
    """
    old_rooms = {room_of(name_of(line)) for line in before}
    said, missing = {*re.findall(r"[\w-]+", text.lower())}, []
    for name in sorted({name_of(line) for line in {*lines} ^ {*before}}):
        room = room_of(name)
        words = [*words_of(name), *([] if room in old_rooms else [room])]
        if not any({*re.findall(r"[\w-]+", word.lower())} <= said for word in words):
            missing.append(name)
    return missing


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.house.public_api", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the list; without it, print what has changed")
    parser.add_argument("--release", action="store_true", help="keep the list as that of the version, too")
    options = parser.parse_args()
    lines, before = public_api(), CURRENT.read_text().splitlines() if CURRENT.exists() else []
    for line in sorted({*lines} ^ {*before}):
        print("+" if line in lines else "-", line)
    text = "\n".join(lines) + "\n"
    if options.write or options.release:
        CURRENT.write_text(text)
    if options.release:
        (FOLDER / f"public_api_{jaxtex.__version__}.txt").write_text(text)


if __name__ == "__main__":
    main()
