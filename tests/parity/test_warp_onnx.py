"""The node tests of ONNX's GridSample: what `grid_sample` returns for their inputs.

Inputs and results are those of onnx/backend/test/case/node/gridsample.py in ONNX 1.23, to the four digits that it has,
six for two cubic ones. Its linear and cubic are PyTorch's bilinear and bicubic. Earlier releases had other results for
the nearest texel of volumes, those of PyTorch 2.0, which rounded halves away from zero there.
"""

import numpy as np
import pytest

import jaxtex.warp as jw
from tests.support.tolerances import assert_close

ROWS = np.arange(6.0).reshape(1, 1, 3, 2)
VOLUME = np.arange(1.0, 13.0).reshape(1, 1, 3, 2, 2)
LINE = np.linspace(-1, 1, 6)
MESH = np.stack(np.meshgrid(LINE, LINE), -1)

PLACES = [[-1, -0.5, -0.2, 0], [0, -0.2, 0.5, 1]]
DIAGONAL = np.stack([PLACES, PLACES], -1)
FAR_PLACES = [[-10, -5, -0.2, 10], [10, -0.2, 5, 10]]
FAR = np.stack([FAR_PLACES, FAR_PLACES], -1)
OTHERS = [[[-1, -0.8], [-0.6, -0.5], [-0.1, -0.2], [0.7, 0]], [[0, 0.4], [0.2, -0.2], [-0.3, 0.5], [-1, 1]]]
IN_VOLUME = np.array(
    [
        [
            [[-1, -1, -1], [-1, -0.5, 0.3]],
            [[-0.5, -0.5, -0.5], [1, -0.6, -1]],
            [[-0.2, -0.2, -0.2], [0.4, 0.2, 0.6]],
            [[0, 0, 0], [-1, 0, 0]],
        ],
        [
            [[0, 0, 0], [-1, 1, 0]],
            [[-0.2, -0.2, -0.2], [1, 0.4, -0.2]],
            [[0.5, 0.5, 0.5], [-1, -0.8, 0.8]],
            [[1, 1, 1], [0.4, 0.6, -0.3]],
        ],
    ]
)

# name: image, grid, (mode, padding_mode, align_corners), result
CASES = {
    "gridsample": (
        np.arange(16.0).reshape(1, 1, 4, 4),
        MESH,
        ("bilinear", "zeros", False),
        [
            [0, 0.15, 0.55, 0.95, 1.35, 0.75],
            [0.6, 1.5, 2.3, 3.1, 3.9, 2.1],
            [2.2, 4.7, 5.5, 6.3, 7.1, 3.7],
            [3.8, 7.9, 8.7, 9.5, 10.3, 5.3],
            [5.4, 11.1, 11.9, 12.7, 13.5, 6.9],
            [3, 6.15, 6.55, 6.95, 7.35, 3.75],
        ],
    ),
    "zeros_padding": (ROWS, FAR, ("bilinear", "zeros", False), [[0, 0, 1.7, 0], [0, 1.7, 0, 0]]),
    "border_padding": (ROWS, FAR, ("bilinear", "border", False), [[0, 0, 1.7, 5], [5, 1.7, 5, 5]]),
    "reflection_padding": (ROWS, FAR, ("bilinear", "reflection", False), [[2.5, 0, 1.7, 2.5], [2.5, 1.7, 5, 2.5]]),
    "bilinear": (ROWS, DIAGONAL, ("bilinear", "zeros", False), [[0, 0.5, 1.7, 2.5], [2.5, 1.7, 4.5, 1.25]]),
    "aligncorners_true": (ROWS, DIAGONAL, ("bilinear", "zeros", True), [[0, 1.25, 2, 2.5], [2.5, 2, 3.75, 5]]),
    "nearest": (ROWS, DIAGONAL, ("nearest", "zeros", False), [[0, 0, 2, 2], [2, 2, 5, 0]]),
    "bicubic": (
        ROWS,
        DIAGONAL,
        ("bicubic", "zeros", False),
        [[-0.1406, 0.3828, 1.7556, 2.9688], [2.9688, 1.7556, 5.1445, 1.3906]],
    ),
    "nearest_align_corners_0_additional_1": (ROWS, OTHERS, ("nearest", "zeros", False), [[0, 0, 2, 3], [4, 3, 4, 4]]),
    "nearest_align_corners_1_additional_1": (ROWS, OTHERS, ("nearest", "zeros", True), [[0, 0, 2, 3], [2, 3, 4, 4]]),
    "bilinear_align_corners_0_additional_1": (
        ROWS,
        OTHERS,
        ("bilinear", "zeros", False),
        [[0, 0.45, 1.8, 2.4], [3.7, 2.1, 3.7, 1]],
    ),
    "bilinear_align_corners_1_additional_1": (
        ROWS,
        OTHERS,
        ("bilinear", "zeros", True),
        [[0.4, 1.2, 2.05, 2.85], [3.3, 2.2, 3.35, 4]],
    ),
    "bicubic_align_corners_0_additional_1": (
        ROWS,
        OTHERS,
        ("bicubic", "zeros", False),
        [[-0.17325, 0.284265, 1.923106, 2.568], [5.170375, 2.284414, 4.744844, 1.046875]],
    ),
    "bicubic_align_corners_1_additional_1": (
        ROWS,
        OTHERS,
        ("bicubic", "zeros", True),
        [[0.304001, 1.12875, 2.26627, 3.144844], [4.5315, 2.45536, 4.599819, 4]],
    ),
    "volumetric_nearest_align_corners_0": (
        VOLUME,
        IN_VOLUME,
        ("nearest", "zeros", False),
        [[[1, 5], [1, 0], [5, 12], [5, 5]], [[5, 0], [5, 0], [12, 9], [0, 8]]],
    ),
    "volumetric_nearest_align_corners_1": (
        VOLUME,
        IN_VOLUME,
        ("nearest", "zeros", True),
        [[[1, 5], [1, 2], [5, 12], [5, 5]], [[5, 7], [5, 8], [12, 9], [12, 8]]],
    ),
    "volumetric_bilinear_align_corners_0": (
        VOLUME,
        IN_VOLUME,
        ("bilinear", "zeros", False),
        [[[0.125, 3.4], [2, 0.45], [4.7, 10.9], [6.5, 3]], [[6.5, 1.75], [4.7, 3.3], [11, 2.52], [1.5, 5.49]]],
    ),
    "volumetric_bilinear_align_corners_1": (
        VOLUME,
        IN_VOLUME,
        ("bilinear", "zeros", True),
        [[[1, 6.7], [3.75, 2.4], [5.4, 9.3], [6.5, 6]], [[6.5, 7], [5.4, 6.6], [9.25, 8.4], [12, 6.1]]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_grid_sample(name):
    image, grid, modes, expected = CASES[name]
    actual = jw.grid_sample(image.astype(np.float32), np.asarray(grid, np.float32)[None], *modes)
    assert_close("onnx digits", actual, np.array(expected)[None, None], 1)
