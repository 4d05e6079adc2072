"""The packages of the extra `cli`: `jaxtex warp` needs them, `import jaxtex` does not."""

# pyright: strict

import importlib.util

from ..errors import UserError

# The name of each module, and of the package that installs it.
PACKAGES = {"PIL": "pillow", "tifffile": "tifffile", "imagecodecs": "imagecodecs", "tqdm": "tqdm"}


def check_extra() -> None:
    """Checks that the extra `cli` is installed, and imports none of it.

    Raises:
        UserError: if a package is missing.
    """
    missing = [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UserError(
            f"jaxtex warp reads and writes images with packages that are not installed ({', '.join(missing)}); "
            "install them with: pip install 'jaxtex[cli]'"
        )
