"""`jaxtex.cuda` as a whole: its rooms import in one direction."""

from test_house import SOURCES, imports

# Rooms of the package, each with the rooms that it may import from; "" is what they share.
ROOMS = {"": ("",), "memory": ("",), "textures": ("", "memory"), "surfaces": ("", "memory")}


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
