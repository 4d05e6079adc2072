"""Records `lenses_opencv.npz.xz`: lenses in OpenCV, and the calibration files that it writes. It needs opencv-python.

    python tests/data/record_lenses.py

Points and maps are OpenCV's, with pixel centers at whole numbers. Values are computed in float64 where OpenCV does so.
"""

import io
import lzma
import tempfile
from pathlib import Path

import cv2
import numpy as np

HERE = Path(__file__).parent
HEIGHT, WIDTH = 24, 32
CAMERA = np.array([[13.0, 0, 16.5], [0, 14.0, 11.0], [0, 0, 1]])
IDEAL = np.array([[9.0, 0, 15.0], [0, 8.5, 12.0], [0, 0, 1]])
FISHEYES = np.array([[-0.02, 0.01, -0.004, 0.001], [0.1, -0.03, 0.02, -0.005], [0.0, 0.0, 0.0, 0.0]])
BROWN_CONRADY = np.array([[-0.25, 0.08, 0.004, -0.003, 0.01]])
IMAGE = np.random.default_rng(0).normal(size=(HEIGHT, WIDTH, 1)).astype(np.float16).astype(np.float32)
TURN = cv2.Rodrigues(np.array([0.1, -0.2, 0.05]))[0]  # about all axes
PRECISE = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 1000, 1e-14)


def fisheye(coefficients):
    """What the model makes of an image and of points."""
    x, y = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    points = np.stack([x, y], -1).reshape(-1, 1, 2).astype(np.float64)
    maps = cv2.fisheye.initUndistortRectifyMap(CAMERA, coefficients, np.eye(3), IDEAL, (WIDTH, HEIGHT), cv2.CV_32FC1)
    ideal = cv2.fisheye.undistortPoints(points, CAMERA, coefficients, P=IDEAL, criteria=PRECISE)
    straight = cv2.fisheye.undistortImage(IMAGE, CAMERA, coefficients, Knew=IDEAL)
    return {
        "coefficients": coefficients,
        "distorted": np.stack(maps, -1),
        "ideal": ideal.reshape(HEIGHT, WIDTH, 2),
        "straight": straight,
    }


def rectified():
    """Where the pixels of a rectified image are read, of both models, and of one without a turn."""
    size = (WIDTH, HEIGHT)
    brown = cv2.initUndistortRectifyMap(CAMERA, BROWN_CONRADY, TURN, IDEAL, size, cv2.CV_32FC1)
    plain = cv2.initUndistortRectifyMap(CAMERA, BROWN_CONRADY, np.eye(3), IDEAL, size, cv2.CV_32FC1)
    fisheye = cv2.fisheye.initUndistortRectifyMap(CAMERA, FISHEYES[0], TURN, IDEAL, size, cv2.CV_32FC1)
    maps = {"brown_conrady": brown, "plain": plain, "fisheye": fisheye}
    return {"turn": TURN} | {name: np.stack(found, -1) for name, found in maps.items()}


def calibration(suffix, fields):
    """The bytes of a calibration file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"calibration{suffix}"
        storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
        for name, value in fields.items():
            storage.write(name, value)
        storage.release()
        return np.frombuffer(path.read_bytes(), np.uint8)


def main():
    arrays = {"camera": CAMERA, "new_camera": IDEAL, "image": IMAGE}
    arrays |= {"version": np.frombuffer(cv2.__version__.encode(), np.uint8)}
    for k, coefficients in enumerate(FISHEYES):
        arrays |= {f"fisheye{k}/{name}": array for name, array in fisheye(coefficients).items()}
    arrays |= {f"rectified/{name}": array for name, array in rectified().items()}
    fields = {
        "calibration_time": "Mon Nov 23 2026",
        "image_width": WIDTH,
        "image_height": HEIGHT,
        "avg_reprojection_error": 0.25,
        "camera_matrix": CAMERA,
    }
    for suffix in (".yml", ".json"):
        arrays[f"brown_conrady{suffix}"] = calibration(suffix, fields | {"distortion_coefficients": BROWN_CONRADY})
        named = {"fisheye_model": 1, **fields, "distortion_coefficients": FISHEYES[0][:, None]}
        arrays[f"fisheye{suffix}"] = calibration(suffix, named)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    (HERE / "lenses_opencv.npz.xz").write_bytes(lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
