"""Compares the programs of two commits: `python -m tests.lowered --write FOLDER`, then `--compare FOLDER`.

A battery of calls of the public interface is lowered, for CPUs and for NVIDIA GPUs; nothing is compiled. `--write`
keeps the texts of the programs and of their kernels in a folder. `--compare` makes them anew and shows what differs.
Neither locations nor the names of private functions are part of a text, so a refactoring that changes no program
changes no text. In a checkout of an older commit, copy this folder there first.
"""

import gc
import os

DEVICES = "--xla_force_host_platform_device_count"


def run():
    """Sets what XLA reads when it starts, before JAX is imported: the calls need eight devices, and no GPU."""
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags if DEVICES in flags else f"{flags} {DEVICES}=8".strip()}
    from tests.lowered.comparison import main

    # JAX keeps most of what tracing makes, so the collector of cycles need not look at it often.
    gc.set_threshold(200_000, 50, 100)
    return main()


if __name__ == "__main__":
    raise SystemExit(run())
