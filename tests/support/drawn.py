"""Tests of drawn values: each runs for some seeds, and says which fails. `pytest --seeds 100` takes more of them."""

import functools
import inspect

import numpy as np

SEEDS = 4


def given(**draws):
    """Runs a test with arguments that functions of a generator draw, for one seed after the other."""

    def decorate(test):
        @functools.wraps(test)
        def run(**others):
            for seed in range(SEEDS):
                rng = np.random.default_rng(seed)
                try:
                    test(**others, **{name: draw(rng) for name, draw in draws.items()})
                except Exception as error:
                    error.add_note(f"seed {seed}")
                    raise

        parameters = inspect.signature(test).parameters
        run.__signature__ = inspect.Signature([p for name, p in parameters.items() if name not in draws])
        return run

    return decorate


def floats(*shape, low=-8.0, high=8.0):
    """Multiples of 2^-12, so that no draw is subnormal; one in eight is 0, a multiple of 1/2, or an end."""

    def draw(rng):
        anywhere = rng.integers(round(low * 4096), round(high * 4096), shape, endpoint=True)
        halves = rng.integers(int(np.ceil(low * 2)), int(np.floor(high * 2)), shape, endpoint=True) * 2048
        special = np.where(rng.random(shape) < 0.5, halves, rng.choice([low * 4096, max(low, 0), high * 4096], shape))
        return (np.where(rng.random(shape) < 1 / 8, special, anywhere) / 4096).astype(np.float32)

    return draw


def integers(*shape, low, high):
    return lambda rng: rng.integers(low, high, shape, np.int32, endpoint=True)


def tuples(*draws):
    return lambda rng: tuple(draw(rng) for draw in draws)
