"""What jaxtex shares with other libraries, in their own conventions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.ndimage import map_coordinates
from tolerances import assert_close

import jaxtex as jt

SIZES = {1: (7,), 2: (7, 5), 3: (5, 3, 6)}  # x, y, z
BUILD = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}


def indices(sizes, n=60, seed=0):
    """Array indices in and around the array, away from integers and halves, where conventions on ties differ."""
    rng = np.random.default_rng(seed)
    cells = [rng.integers(-2 * size, 3 * size, n) + 0.5 * rng.integers(0, 2, n) for size in sizes]
    return [cell + rng.uniform(0.05, 0.45, n) for cell in cells]


def scale(array):
    return np.abs(array).max()


# ------------------------------------------------------------------------------ jax.scipy.ndimage.map_coordinates

# "reflect" and "mirror" swap their names: SciPy's reflect repeats the edge.
NDIMAGE = {"nearest": "clamp", "wrap": "wrap", "reflect": "mirror", "mirror": "reflect", "constant": "border"}


@pytest.mark.parametrize("mode", NDIMAGE)
@pytest.mark.parametrize(
    ("dimension", "order", "filter_mode"), [(1, 1, "linear"), (2, 0, "point"), (2, 1, "linear"), (3, 1, "linear")]
)
def test_map_coordinates(dimension, order, filter_mode, mode):
    sizes = SIZES[dimension]
    array = np.random.default_rng(1).normal(size=sizes[::-1]).astype(np.float32)
    coords = [p.astype(np.float32) for p in indices(sizes)]
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        expected = map_coordinates(array, coords[::-1], order=order, mode=mode, cval=2.5)
    sampler = jt.Sampler(filter_mode=filter_mode, address_mode=NDIMAGE[mode], normalized_coords=False)
    texture = BUILD[dimension](array[..., None], border_color=np.float32(2.5))
    actual = jt.sample(texture, tuple(p + np.float32(0.5) for p in coords), sampler)[:, 0]
    assert_close("peer", actual, expected, scale(array))


# -------------------------------------------------------------------------------------------- torch.grid_sample

FILTERS = {"nearest": "point", "bilinear": "linear", "bicubic": "cubic"}
PADDINGS = {"zeros": "border", "border": "clamp", "reflection": {False: "mirror", True: "reflect"}}
GRIDS = [
    *((2, mode, padding, align) for mode in ("nearest", "bilinear") for padding in PADDINGS for align in (False, True)),
    *((2, "bicubic", *case) for case in (("zeros", True), ("border", False), ("reflection", False))),
    *((3, "bilinear", *case) for case in (("zeros", True), ("border", False), ("reflection", True))),
]


def grid_coordinate(g, size, align_corners):
    """A coordinate of torch's, -1 to 1 between the outer texels' centres or edges, as jaxtex has it."""
    return (g + 1) * (0.5 * (size - 1)) + 0.5 if align_corners else (g + 1) * 0.5


@pytest.mark.parametrize(("dimension", "mode", "padding", "align_corners"), GRIDS)
def test_grid_sample_and_its_gradients(dimension, mode, padding, align_corners):
    torch = pytest.importorskip("torch")
    sizes = SIZES[dimension]
    rng = np.random.default_rng(2)
    image = rng.normal(size=(*sizes[::-1], 3)).astype(np.float32)
    cotangent = rng.normal(size=(60, 3)).astype(np.float32)
    grid = tuple(
        np.float32(2 * p / (n - 1) - 1 if align_corners else (2 * p + 1) / n - 1)
        for p, n in zip(indices(sizes), sizes, strict=True)
    )
    address = PADDINGS[padding]
    sampler = jt.Sampler(
        address_mode=address if isinstance(address, str) else address[align_corners],
        filter_mode=FILTERS[mode],
        cubic_coefficient=-0.75,
        normalized_coords=not align_corners,
    )

    @jax.jit
    def ours(image, grid, cotangent):
        def read(image, grid):
            coords = tuple(grid_coordinate(g, n, align_corners) for g, n in zip(grid, sizes, strict=True))
            return jt.sample(BUILD[dimension](image), coords, sampler)

        values, pullback = jax.vjp(read, image, grid)
        return values, *pullback(cotangent)

    values, image_gradient, grid_gradient = ours(image, grid, cotangent)

    their_image = torch.tensor(np.moveaxis(image, -1, 0)[None], dtype=torch.float64, requires_grad=True)
    their_grid = np.stack(grid, -1).reshape(1, *[1] * (dimension - 1), 60, dimension)
    their_grid = torch.tensor(their_grid, dtype=torch.float64, requires_grad=True)
    theirs = torch.nn.functional.grid_sample(
        their_image, their_grid, mode=mode, padding_mode=padding, align_corners=align_corners
    ).reshape(3, 60)
    theirs.backward(torch.tensor(cotangent.T, dtype=torch.float64))

    assert_close("peer", values, theirs.detach().numpy().T, scale(image))
    expected = np.moveaxis(their_image.grad.numpy()[0], 0, -1)
    assert_close("peer gradient", image_gradient, expected, scale(expected))
    expected = their_grid.grad.numpy().reshape(60, dimension)
    assert_close("peer gradient", jnp.stack(grid_gradient, -1), expected, max(scale(expected), 1))
