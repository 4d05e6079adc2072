"""The contents of exported programs."""

import contextlib
import operator
from collections.abc import Generator

from jax.export import DisabledSafetyCheck

from ._checks.words import listing, shown
from ._engine.cuda.build.launch import TARGET, local_capability
from ._engine.forms.gpu_kernels import LEAST_COMPUTE_CAPABILITY
from ._jax.contexts import FOR_EXPORTS
from ._jax.versions import has_ptx_call

__all__ = ["kernels_in_exports"]
__dir__ = listing(__all__)


@contextlib.contextmanager
def kernels_in_exports(
    compute_capability: tuple[int, int] | None = None,
) -> Generator[list[DisabledSafetyCheck], None, None]:
    """Lets `jax.export` put jaxtex's GPU kernels into programs that are exported inside this context.

    By default an exported program holds array operations alone: it runs on every platform, and has JAX's guarantee of
    compatibility. With kernels it is as fast on an NVIDIA GPU as a program that is not exported, and runs there without
    jaxtex, but is bound to

    - GPUs of this compute capability or newer;
    - versions of XLA with the custom call ``"__gpu$xla.gpu.ptx"``, which XLA does not promise to keep: jaxlib 0.10.2 to
      0.12.x have it.

    Programs for several devices and symbolic sizes keep array operations, and so do the other platforms of a program
    for several platforms. Calls that are not exported do not change.

    Args:
        compute_capability: the lowest compute capability of the GPUs that will run the program, such as ``(8, 0)``; by
            default that of this process's GPU. If it is given, the exporting process needs no GPU. It always needs
            NVRTC: without it, a warning says so and the program holds array operations.

    Returns:
        A context manager. Its value is the argument ``disabled_checks`` of `jax.export.export`: by default JAX refuses
        to export custom calls without a guarantee.

    Gradients: of a program exported with kernels hold kernels as well, if `Exported.serialize` is called with its
        ``vjp_order`` inside this context; outside it, they hold array operations.

    Raises:
        TypeError: if `compute_capability` is not a pair of integers.
        ValueError: if it is below ``(8, 0)``, or not given where the process sees no such GPU.
        RuntimeError: if this jaxlib is not known to have the custom call.

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> read = jax.jit(lambda image, x: jt.sample(jt.texture1d(image), (x,)))
        >>> image, x = jnp.arange(4.0)[:, None], jnp.array([0.25, 0.5])
        >>> with jt.kernels_in_exports(compute_capability=(8, 0)) as checks:
        ...     exported = jax.export.export(read, disabled_checks=checks)(image, x)
        ...     blob = exported.serialize(vjp_order=1)
        >>> jax.export.deserialize(blob).call(image, x).tolist()
        [[0.5], [1.5]]
    """
    capability = checked(compute_capability)
    if not has_ptx_call():
        raise RuntimeError(
            f"kernels_in_exports: this jaxlib is not known to have the custom call {TARGET!r}; install one that this "
            f"jaxtex supports, or export without kernels."
        )
    with FOR_EXPORTS(capability):
        yield [DisabledSafetyCheck.custom_call(TARGET)]


def checked(capability: object) -> tuple[int, int]:
    """The compute capability that a caller passes, or the one of this process's GPU."""
    least = LEAST_COMPUTE_CAPABILITY
    if capability is None:
        local = local_capability()
        if local is None or local < least:
            raise ValueError(
                "kernels_in_exports: compute_capability is not given, and this process sees no NVIDIA GPU that the "
                f"kernels support; pass the lowest of the GPUs that will run the program, such as {least}."
            )
        return local
    try:
        major, minor = map(operator.index, capability)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        raise TypeError(
            f"kernels_in_exports: compute_capability is {shown(capability)}, expected a pair of integers such as "
            f"{least}."
        ) from None
    if (major, minor) < least:
        raise ValueError(
            f"kernels_in_exports: compute_capability is {(major, minor)}, and kernels need {least} or newer; pass "
            f"{least}, or export without kernels."
        )
    return major, minor
