"""Functions that return a texture object's descriptors, and destroy it."""

# pyright: strict

from ..errors import NOT_SUPPORTED, CudaError, check_type, release
from ..functions import cuda_function
from ..memory.resource_descriptor import ResourceDesc
from .descriptors import ResourceViewDesc, TextureDesc
from .texture_objects import TextureObject


@cuda_function
def destroyTextureObject(texObject: TextureObject) -> None:
    """Marks a texture object as destroyed: `cudaDestroyTextureObject`. There is nothing to release.

    Args:
        texObject: a `TextureObject`. Later use is an error, except of copies that a JAX transformation made.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it was destroyed before.

    Source:
        CUDA Runtime API, `cudaDestroyTextureObject`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> t = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.arange(4)), cuda.TextureDesc())
        >>> cuda.destroyTextureObject(t)
    """
    release("destroyTextureObject", _check_object("destroyTextureObject", texObject))


@cuda_function
def getTextureObjectResourceDesc(texObject: TextureObject) -> ResourceDesc:
    """Returns the resource that a texture object was made of: `cudaGetTextureObjectResourceDesc`.

    Args:
        texObject: a `TextureObject` as `createTextureObject` returned it. An object that went through a transformation
            has no descriptors.

    Returns:
        A `ResourceDesc`.

    Raises:
        CudaError: cudaErrorNotSupported, if the object has no descriptors.

    Source:
        CUDA Runtime API, `cudaGetTextureObjectResourceDesc`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> t = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.arange(4)), cuda.TextureDesc())
        >>> cuda.getTextureObjectResourceDesc(t).resType.name
        'Linear'
    """
    return _made_of("getTextureObjectResourceDesc", texObject)[0]


@cuda_function
def getTextureObjectTextureDesc(texObject: TextureObject) -> TextureDesc:
    """Returns the descriptor that a texture object was made with: `cudaGetTextureObjectTextureDesc`.

    Args:
        texObject: a `TextureObject`, as in `getTextureObjectResourceDesc`.

    Returns:
        A `TextureDesc`.

    Raises:
        CudaError: as in `getTextureObjectResourceDesc`.

    Source:
        CUDA Runtime API, `cudaGetTextureObjectTextureDesc`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> t = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.arange(4)), cuda.TextureDesc(sRGB=1))
        >>> cuda.getTextureObjectTextureDesc(t).sRGB
        1
    """
    return _made_of("getTextureObjectTextureDesc", texObject)[1]


@cuda_function
def getTextureObjectResourceViewDesc(texObject: TextureObject) -> ResourceViewDesc | None:
    """Returns the view that a texture object was made with: `cudaGetTextureObjectResourceViewDesc`.

    Args:
        texObject: a `TextureObject`, as in `getTextureObjectResourceDesc`.

    Returns:
        A `ResourceViewDesc`, or ``None`` if there was none.

    Raises:
        CudaError: as in `getTextureObjectResourceDesc`.

    Source:
        CUDA Runtime API, `cudaGetTextureObjectResourceViewDesc`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> t = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.arange(4)), cuda.TextureDesc())
        >>> cuda.getTextureObjectResourceViewDesc(t) is None
        True
    """
    return _made_of("getTextureObjectResourceViewDesc", texObject)[2]


def _check_object(function: str, t: object) -> TextureObject:
    return check_type(function, "texObject", t, TextureObject, "createTextureObject makes one")


def _made_of(function: str, t: object) -> tuple[ResourceDesc, TextureDesc, ResourceViewDesc | None]:
    """The descriptors of a texture object (801)."""
    made_of = getattr(_check_object(function, t), "_made_of", None)
    if made_of is None:
        raise CudaError(
            NOT_SUPPORTED,
            f"{function}: texObject went through a transformation such as jax.jit, which keeps no descriptors, "
            f"expected what createTextureObject returned; keep the descriptors beside the object.",
        )
    return made_of
