"""CUDA's names: what is made of the table of declarations, the names of parameters, and names with CUDA's prefix."""

import ast
import inspect
import pickle
import re
import traceback
import typing

import pytest

from docs._extensions.cuda_names import tables
from jaxtex import cuda
from jaxtex.cuda.declarations import DECLARATIONS, PTX
from jaxtex.cuda.names import WITH_PREFIX
from jaxtex.cuda.structs import Struct
from tests.house import cuda_names

ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables().splitlines()]
ROWS = [row for row in ROWS if len(row) == 3 and row[0].startswith("`")]
SAME_NAMES = "the same names"
# Public names that CUDA does not have.
OWN = {"NEWEST_COMPUTE_CAPABILITY"}


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


def here(row):
    """The names of `jaxtex.cuda` in a row."""
    return names_in(row[0] if row[1] == SAME_NAMES else row[1])


def resolve(name):
    """What a name such as ``TextureDesc.filterMode`` is, of a zeroed struct."""
    first, *rest = name.split(".")
    value = getattr(cuda, first)
    if inspect.isclass(value) and issubclass(value, Struct) and rest:
        value = value("float") if value is cuda.TextureReference else value()
    for part in rest:
        value = getattr(value, part)
    return value


def test_the_stub_is_that_of_the_declarations():
    text = cuda_names.STUB.read_text()
    assert text == cuda_names.stub(), "run `python -m tests.house.cuda_names --write`"


def test_a_row_has_names_that_exist():
    for row in ROWS:
        assert bool(here(row)) != row[2].startswith("instead: "), row
        for name in here(row):
            resolve(name)


def test_every_public_name_and_enumerator_is_in_the_tables():
    listed = {name for row in ROWS for name in here(row)}
    assert not sorted(set(cuda.__all__) - {name.split(".")[0] for name in listed} - OWN)
    enums = {name for name in cuda.__all__ if hasattr(getattr(cuda, name), "__members__")}
    assert not {f"{name}.{member}" for name in enums for member in getattr(cuda, name).__members__} - listed


def test_a_listing_has_the_public_names_and_those_with_cudas_prefix_alone():
    """`dir`, and the stub for type checkers, whose private names are its own."""
    listed = sorted({*cuda.__all__, *WITH_PREFIX})
    assert dir(cuda) == listed
    names = set()
    for node in ast.parse(cuda_names.STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):  # a name is exported if it is imported as itself
            names |= {alias.name for alias in node.names if alias.asname == alias.name}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets}
    is_private = lambda name: name.startswith("_") and not name.startswith("__")
    assert sorted(name for name in names if not is_private(name)) == listed


def test_parameters_have_cudas_names():
    """Without the pointers to results, and with types; options of this package are keyword only."""
    for name in DECLARATIONS.keys() - PTX:
        parameters = inspect.signature(getattr(cuda, name)).parameters.values()
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == [p.name for p in DECLARATIONS[name].parameters], name
        assert typing.get_type_hints(getattr(cuda, name)).keys() >= {*positional, "return"}, name


def test_names_with_cudas_prefix_are_answered():
    names = {name for row in ROWS if here(row) for name in names_in(row[0]) if re.fullmatch(r"cuda[A-Z]\w+", name)}
    assert len(names) > 180
    assert names <= {*WITH_PREFIX} <= {*dir(cuda)}
    for name in WITH_PREFIX:
        assert getattr(cuda, name) is not None
    assert cuda.cudaMallocArray is cuda.mallocArray
    assert cuda.cudaTextureDesc is cuda.TextureDesc
    assert cuda.cudaAddressModeWrap is cuda.AddressMode.Wrap
    assert cuda.cudaArrayLayered | cuda.cudaArrayCubemap == cuda.ArrayFlags.Layered | cuda.ArrayFlags.Cubemap
    assert (cuda.cudaSuccess, cuda.cudaErrorInvalidValue) == (cuda.Error.Success, cuda.Error.InvalidValue)


def test_public_names_reach_other_processes():
    for name in (name for name in cuda.__all__ if callable(getattr(cuda, name))):
        assert pickle.loads(pickle.dumps(getattr(cuda, name))) is getattr(cuda, name), name


# Names of the headers of CUDA that are not here, and what the error says to write.
INSTEAD = {
    "block_until_ready": "cudaDeviceSynchronize cudaThreadSynchronize cudaStreamSynchronize cuCtxSynchronize",
    "perf_counter": "cudaEventCreate cudaEventRecord cudaEventElapsedTime cudaEvent_t cuEventCreate clock64",
    "leave it out": "cudaStreamCreate cudaStream_t cudaMemcpyAsync cudaMemcpy2DToArrayAsync_ptsz cudaMallocAsync "
    "cudaMemPrefetchAsync_v3 __syncthreads __syncwarp __threadfence_block __shared__ cuMemcpyHtoAAsync "
    "cudaArrayGetSparseProperties",
    "jax.devices": "cudaSetDevice cudaGetDeviceCount cudaDeviceReset cudaDeviceGetAttribute cuInit cuCtxCreate "
    "cudaMemcpyPeerAsync cudaThreadExit cudaDevAttrMaxTexture1DWidth cudaRuntimeGetVersion findCudaDevice",
    "jax.jit": "dim3 cudaLaunchKernel cudaConfigureCall cuLaunchKernel cudaGraphLaunch cuModuleLoadData __global__ "
    "__launch_bounds__ cudaFuncSetCacheConfig cudaOccupancyMaxPotentialBlockSize nvrtcCompileProgram",
    "jnp.arange": "threadIdx blockIdx blockDim gridDim",
    "as an argument": "cudaMemcpyToSymbol cudaGetSymbolAddress __constant__ cuModuleGetGlobal_v2",
    "jnp.zeros": "cudaMallocManaged cudaMallocHost cudaHostAlloc cudaFreeHost cudaMemGetInfo cudaPointerGetAttributes",
    "jnp.asarray": "cudaGraphicsMapResources cudaGraphicsSubResourceGetMappedArray cudaImportExternalMemory",
    "surface_add": "atomicAdd atomicMax atomicCAS atomicExch",
    "x.sum": "__shfl_down_sync __ballot_sync __any_sync __reduce_add_sync __match_any_sync",
    "CudaError": "cudaErrorMemoryAllocation CUDA_ERROR_OUT_OF_MEMORY CUresult checkCudaErrors",
    "make_float4": "float4 uchar4 uint3 double2 make_float5",
    "dtypes": "uint uchar size_t",
    "jnp.float16": "half __half2 __hmul __float2half",
    "jnp.sin": "sinf __sinf sin",
    "jnp.clip": "__saturatef clamp",
    "minimum": "min umin",
    "jnp.fmax": "fmaxf",
    "rsqrt": "rsqrtf",
    "a * b": "__fmul_rn __mul24 fmaf __fdividef",
    "astype": "__float2int_rn __uint2float_rd",
    "bitcast": "__double_as_longlong",
    "x[i]": "__ldg",
    "debug.print": "printf",
    "use createTextureObject": "cuTexObjectCreate cudaCreateTextureObject_v2",
    "use mallocPitch": "cuMemAllocPitch_v2",
    "use memcpyToArray": "cuMemcpyHtoA cuMemcpyDtoA_v2",
    "use memcpyFromArray": "cuMemcpyAtoH_v2",
    "use ResourceDesc": "CUDA_RESOURCE_DESC",
    "use AddressMode": "CU_TR_ADDRESS_MODE_WRAP CUaddress_mode",
    "TextureReference": "cuModuleGetTexRef cuTexRefSetFilterMode CUtexref textureReference",
    "names of the runtime": "cuUserObjectCreate CUuuid",
    "did you mean cudaMallocArray?": "cudaMallocArry",
    "did you mean cudaAddressModeWrap?": "cudaAddressModeWarp",
    "did you mean surf2Dwrite?": "surf2DWrite surf2Dwritte",
    "did you mean TextureDesc?": "TexturDesc",
}


def test_names_that_are_not_here_say_what_to_write():
    """In one line, which Python's traceback does not add to."""
    for said, names in INSTEAD.items():
        for name in names.split():
            with pytest.raises(AttributeError) as raised:
                getattr(cuda, name)
            assert str(raised.value).startswith(f"module 'jaxtex.cuda' has no attribute '{name}'; ")
            assert said in str(raised.value), name
            assert traceback.format_exception_only(raised.value) == [f"AttributeError: {raised.value}\n"]
    with pytest.raises(AttributeError, match=r"^module 'jaxtex.cuda' has no attribute 'nothing'$"):
        cuda.nothing  # noqa: B018
