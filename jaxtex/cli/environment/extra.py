"""The packages of the extras `cli` and `explore`: commands need them, `import jaxtex` does not."""

# pyright: strict

import importlib.util
from collections.abc import Mapping

from ..errors import UserError

# The name of each module, and of the package that installs it.
PACKAGES = {"PIL": "pillow", "tifffile": "tifffile", "imagecodecs": "imagecodecs", "tqdm": "tqdm"}
# Of `jaxtex explore`, which needs those above too.
EXPLORE_PACKAGES = {"panel": "panel"}


def check_extra() -> None:
    """Checks that the extra `cli` is installed, and imports none of it.

    Raises:
        UserError: if a package is missing.
    """
    check_packages(PACKAGES, "jaxtex warp reads and writes images", "cli")


def check_explore_extra() -> None:
    """Checks that the extra `explore` is installed, and imports none of it.

    Raises:
        UserError: if a package is missing.
    """
    check_packages(EXPLORE_PACKAGES | PACKAGES, "jaxtex explore reads images and serves a page", "explore")


def check_packages(packages: Mapping[str, str], use: str, extra: str) -> None:
    """Checks that modules can be imported, and imports none.

    Raises:
        UserError: if a package is missing.
    """
    missing = [package for module, package in packages.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UserError(
            f"{use} with packages that are not installed ({', '.join(missing)}); "
            f"install them with: pip install 'jaxtex[{extra}]'"
        )
