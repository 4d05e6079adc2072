"""Reads a 1D texture at whole pixel coordinates: CUDA's `readTexels`.

T[i] = i, linear filter, coordinates in texels. The center of texel i is at i + 0.5, so a read at x = i is halfway
between texels i - 1 and i. Under clamp the first read sees T[0] twice: 0, 0.5, 1.5, ..., 8.5.
"""

import argparse

import numpy as np

import jaxtex as jt

PIXELS = jt.Sampler(address_mode="clamp", filter_mode="linear", normalized_coords=False)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Read N texels at whole coordinates.")
    parser.add_argument("--count", type=int, default=10, metavar="N")
    args = parser.parse_args(argv)

    ramp = np.arange(args.count, dtype=np.float32)
    for value in np.asarray(jt.sample(jt.texture1d(ramp[:, None]), (ramp,), PIXELS))[:, 0]:
        print(f"{value:f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
