"""What makes the picture of a view: a call in Python, and a command line where there is one."""

# pyright: strict

import shlex

import numpy as np

from ..pictures.limits import Size
from ..transforms.mappings import MAX_ANISOTROPY
from .shown_picture import ShownPicture
from .views import View

OUTPUT = "warped.png"
LONGEST_LINE = 96
# What the lines that hold a name need.
IMPORTS = {
    "imagecodecs.": "import imagecodecs",
    "jt.": "import jaxtex as jt",
    "np.": "import numpy as np",
    "Image.": "from PIL import Image, ImageOps",
}


def python_call(view: View, picture: ShownPicture) -> str:
    """Python that reads the picture and warps it as the view shows."""
    lines = [*reading(picture), "", *warping(view, picture.shown_size)]
    imports = [statement for name, statement in IMPORTS.items() if any(name in line for line in lines)]
    return "\n".join([*imports, "", *lines, ""])


def reading(picture: ShownPicture) -> list[str]:
    """The statements that read a picture as the page does."""
    path, is_gray = str(picture.path), picture.pixels.shape[-1] == 1
    if picture.has_16_bits:
        index = "" if picture.page is None else f", index={picture.page - 1}"
        lines = [f"image = imagecodecs.imread({path!r}{index})"]
        lines += ["image = image.reshape(*image.shape[:2], -1)[..., :1]" if is_gray else "image = image[..., :3]"]
        lines += ["image = np.rint(image / 257).astype(np.uint8)"]
    else:
        lines = [f"opened = Image.open({path!r})"]
        lines += [] if picture.page is None else [f"opened.seek({picture.page - 1})"]
        mode, axis = ("L", "[..., None]") if is_gray else ("RGB", "")
        lines += [f'image = np.asarray(ImageOps.exif_transpose(opened).convert("{mode}")){axis}']
    if picture.shown_size != picture.size:
        lines += [f"image = jt.warp.resize(image, {picture.shown_size[::-1]})  # the preview"]
    return lines


def warping(view: View, size: Size) -> list[str]:
    """The statements that warp an `image` of this width and height."""
    if view.reads_level:
        return reading_level(view, size)
    options = [f'filter="{view.filter}"', f'address="{view.address}"']
    fields = [f"max_anisotropy={view.anisotropy}"] if view.antialias and view.anisotropy > 1 else []
    fields += [f'arithmetic="{view.arithmetic}"'] if view.arithmetic != "float" else []
    options += ["antialias=True"] if view.antialias else []
    options += [f"sampler=jt.Sampler({', '.join(fields)})"] if fields else []
    if view.tilt:
        return [*matrix_lines(view, size), *call("jt.warp.warp_perspective", ["image", "matrix", *options])]
    return call("jt.warp.rotate", ["image", repr(float(view.degrees)), f"scale={view.scale:g}", *options])


def reading_level(view: View, size: Size) -> list[str]:
    """The statements that read an `image` of this width and height at a level of detail."""
    fields = [f'filter_mode="{view.filter}"', f'address_mode="{view.address}"', 'mipmap_filter_mode="linear"']
    fields += [f'arithmetic="{view.arithmetic}"'] if view.arithmetic != "float" else []
    return [
        *matrix_lines(view, size),
        "height, width = image.shape[:2]",
        "x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)",
        'x, y, w = np.einsum("ij,jhw->ihw", np.linalg.inv(matrix), [x, y, np.ones_like(x)])',
        "coords = np.float32(x / w / width), np.float32(y / w / height)",
        "chain = jt.build_mipmaps(jt.texture2d(image / np.float32(255)))",
        *call("jt.Sampler", fields, "sampler"),
        f"warped = jt.sample(chain, coords, sampler, lod={view.level:g})  # from 0 to 1",
    ]


def matrix_lines(view: View, size: Size) -> list[str]:
    """The statement that makes the matrix of a view."""
    rows = [", ".join(f"{element:.8g}" for element in row) for row in view.matrix(size)]
    return ["matrix = np.array([", *(f"    [{row}]," for row in rows), "])"]


def call(name: str, arguments: list[str], result: str = "warped") -> list[str]:
    """The statement of a call, on one line if it fits, else with a line for each argument."""
    line = f"{result} = {name}({', '.join(arguments)})"
    if len(line) <= LONGEST_LINE:
        return [line]
    return [f"{result} = {name}(", *(f"    {argument}," for argument in arguments), ")"]


def command_line(view: View, picture: ShownPicture) -> str | None:
    """The command that makes the picture of a view; `None` if there is none, as `command_problem` says."""
    if command_problem(view) is not None:
        return None
    words = ["jaxtex", "warp", str(picture.path), OUTPUT]
    if view.tilt:
        words += ["--perspective", *corner_pairs(view, picture.size)]
    else:
        words += ["--rotate", f"{view.degrees:g}", "--scale", f"{view.scale:g}"]
    words += ["--filter", view.filter, "--address", view.address]
    words += ["--antialias"] if view.antialias else []
    words += [] if picture.page is None else ["--page", str(picture.page)]
    return shlex.join(words)


def command_problem(view: View) -> str | None:
    """Why no command makes the picture of a view, as a sentence."""
    if view.arithmetic != "float":
        return "jaxtex warp has no hardware arithmetic."
    if view.reads_level:
        return "jaxtex warp has no option for a level of detail."
    if view.antialias and view.filter == "point":
        return "jaxtex warp does not combine --antialias with --filter point."
    if view.antialias and view.tilt and view.anisotropy != MAX_ANISOTROPY:
        return f"jaxtex warp --antialias reads a tilted picture with an anisotropy of {MAX_ANISOTROPY}."
    return None


def corner_pairs(view: View, size: Size) -> list[str]:
    """The points of the picture that the corners of the output show, and the corners, as X,Y:X,Y."""
    width, height = size
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float64)
    x, y, w = np.linalg.inv(view.matrix(size)) @ np.column_stack([corners, np.ones(4)]).T
    return [f"{u:.8g},{v:.8g}:{p:g},{q:g}" for u, v, (p, q) in zip(x / w, y / w, corners)]
