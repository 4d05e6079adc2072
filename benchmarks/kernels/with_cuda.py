"""The programs as a CUDA programmer writes them: one kernel each, with texture objects, compiled by CuPy."""

from typing import Any, NamedTuple

import numpy as np

import jaxtex as jt

from ..peers.protocol import Run, as_jax, on_gpu, optional
from ..peers.with_cupy import texture_object, wait
from .programs import LINEAR, MEDIAN_OF_NINE, NOISE, PATCH, POINT, RADIUS, SEARCH, Program

BLOCK = (16, 16)
HEADER = """
typedef cudaTextureObject_t Texture;
__device__ float4 operator*(float s, float4 a) { return make_float4(s * a.x, s * a.y, s * a.z, s * a.w); }
__device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__device__ float squared(float4 a, float4 b) {
  const float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;
  return x * x + y * y + z * z;
}
extern "C" __global__ void kernel(OUT* out, PARAMETERS, int width, int height) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= width || j >= height) return;
  const long long at = (long long)j * width + i;
  const float x = i + 0.5f, y = j + 0.5f;
  BODY
}
"""


class Kernel(NamedTuple):
    """A kernel.

    Attributes:
        out: the type of a result.
        arguments: for each argument of the program a name and how it is passed: a sampler for a texture object, `None`
            for an array, or "number".
        body: what a thread does; it writes ``out[at]``.
    """

    out: str
    arguments: dict[str, Any]
    body: str


SOBEL = """
#define AT(u, v) tex2D<float>(image, x + (u), y + (v))
const float h = AT(1, -1) + 2 * AT(1, 0) + AT(1, 1) - AT(-1, -1) - 2 * AT(-1, 0) - AT(-1, 1);
const float v = AT(-1, -1) + 2 * AT(0, -1) + AT(1, -1) - AT(-1, 1) - 2 * AT(0, 1) - AT(1, 1);
out[at] = fminf(fabsf(h) + fabsf(v), 1.0f);
"""
BILATERAL = f"""
const float4 center = tex2D<float4>(image, x, y);
const float scale = 0.5f / (sigma * sigma);
float4 total = make_float4(0, 0, 0, 0);
float sum = 0;
for (int v = -{RADIUS}; v <= {RADIUS}; v++)
  #pragma unroll
  for (int u = -{RADIUS}; u <= {RADIUS}; u++) {{
    const float4 color = tex2D<float4>(image, x + u, y + v);
    const float weight = __expf(-(u * u + v * v) / 32.0f - squared(color, center) * scale);
    total = total + weight * color;
    sum += weight;
  }}
out[at] = (1 / sum) * total;
"""
MEDIAN = (
    "float v[9];\n#pragma unroll\n"
    "for (int k = 0; k < 9; k++) v[k] = tex2D<float>(image, x + k % 3 - 1, y + k / 3 - 1);\n"
    + "".join(
        f"{{ const float a = fminf(v[{a}], v[{b}]); v[{b}] = fmaxf(v[{a}], v[{b}]); v[{a}] = a; }}\n"
        for a, b in MEDIAN_OF_NINE
    )
    + "out[at] = v[4];\n"
)
NONLOCAL = f"""
float4 own[{(2 * PATCH + 1) ** 2}];
for (int q = -{PATCH}, k = 0; q <= {PATCH}; q++)
  for (int p = -{PATCH}; p <= {PATCH}; p++) own[k++] = tex2D<float4>(image, x + p, y + q);
float4 total = make_float4(0, 0, 0, 0);
float sum = 0;
for (int v = -{SEARCH}; v <= {SEARCH}; v++)
  for (int u = -{SEARCH}; u <= {SEARCH}; u++) {{
    float distance = 0;
    #pragma unroll
    for (int q = -{PATCH}; q <= {PATCH}; q++)
      #pragma unroll
      for (int p = -{PATCH}; p <= {PATCH}; p++)
        distance += squared(tex2D<float4>(image, x + u + p, y + v + q),
                            own[(q + {PATCH}) * {2 * PATCH + 1} + p + {PATCH}]);
    const float weight = __expf(-distance / {(2 * PATCH + 1) ** 2 * NOISE**2}f);
    total = total + weight * tex2D<float4>(image, x + u, y + v);
    sum += weight;
  }}
out[at] = (1 / sum) * total;
"""
BICUBIC = """
const float px = floorf(x / 2 - 0.5f), py = floorf(y / 2 - 0.5f), f = x / 2 - 0.5f - px, g = y / 2 - 0.5f - py;
#define LOW(f) ((1 - f) * (1 - f) * (1 - f) / 6)
#define SECOND(f) ((4 + 3 * f * f * f - 6 * f * f) / 6)
#define THIRD(f) ((1 + 3 * (f + f * f - f * f * f)) / 6)
#define HIGH(f) (f * f * f / 6)
const float a0 = LOW(f) + SECOND(f), a1 = THIRD(f) + HIGH(f), b0 = LOW(g) + SECOND(g), b1 = THIRD(g) + HIGH(g);
const float x0 = px + SECOND(f) / a0 - 0.5f, x1 = px + HIGH(f) / a1 + 1.5f;
const float y0 = py + SECOND(g) / b0 - 0.5f, y1 = py + HIGH(g) / b1 + 1.5f;
out[at] = b0 * (a0 * tex2D<float4>(image, x0, y0) + a1 * tex2D<float4>(image, x1, y0)) +
          b1 * (a0 * tex2D<float4>(image, x0, y1) + a1 * tex2D<float4>(image, x1, y1));
"""
BLEND = """
const float u = x / width, v = y / height, c = cosf(p[0]), s = sinf(p[0]);
const float ru = (u - 0.5f) * c - (v - 0.5f) * s + 0.5f, rv = (v - 0.5f) * c + (u - 0.5f) * s + 0.5f;
const float share = tex2D<float>(mask, ru, rv);
const float4 m = share * tex2D<float4>(a, ru, rv) + (1 - share) * tex2D<float4>(b, u, v);
out[at] = make_float4(__powf(m.x, p[1]), __powf(m.y, p[1]), __powf(m.z, p[1]), __powf(m.w, p[1]));
"""
MORPH = """
const float2 f = ((const float2*)there)[at], g = ((const float2*)back)[at];
out[at] = (1 - time) * tex2D<float4>(a, x + time * f.x, y + time * f.y) +
          time * tex2D<float4>(b, x + (1 - time) * g.x, y + (1 - time) * g.y);
"""
TANH = """
const float u = (float)i / width, v = (float)j / height;
const float4 a = tex2D<float4>(image, 0.9f * u + 0.1f * v, 0.95f * v + 0.02f);
out[at] = make_float4(tanhf(a.x), tanhf(a.y), tanhf(a.z), tanhf(a.w));
"""
VOLUME = """
float4 color = make_float4(0, 0, 0, 0);
const int steps = width / 2;
for (int k = 0; k < steps && color.w < 0.95f; k++) {
  const float z = (k + 0.5f) / steps;
  const float d = tex3D<float>(density, 0.9f * x / width + 0.1f * z, y / height, z);
  float4 q = tex1D<float4>(colors, d);
  const float absorbed = q.w * (1 - color.w);
  q.w = 1;
  color = color + absorbed * q;
}
out[at] = color;
"""
SMOOTH = jt.Sampler()
KERNELS = {
    "sobel": Kernel("float", {"image": POINT}, SOBEL),
    "bilateral": Kernel("float4", {"image": POINT, "sigma": "number"}, BILATERAL),
    "volume": Kernel("float4", {"density": SMOOTH, "colors": SMOOTH}, VOLUME),
    "blend": Kernel("float4", {"a": SMOOTH, "b": SMOOTH, "mask": SMOOTH, "p": None}, BLEND),
    "tanh": Kernel("float4", {"image": SMOOTH}, TANH),
    "bicubic": Kernel("float4", {"image": LINEAR}, BICUBIC),
    "median": Kernel("float", {"image": POINT}, MEDIAN),
    "nonlocal_means": Kernel("float4", {"image": POINT}, NONLOCAL),
    "morph": Kernel("float4", {"a": LINEAR, "b": LINEAR, "there": None, "back": None, "time": "number"}, MORPH),
}


def cuda(name: str, program: Program) -> Run | None:
    """The program as a kernel, where there is one and CuPy can run it."""
    if name not in KERNELS or not on_gpu() or (cupy := optional("cupy")) is None:
        return None
    kernel, (height, width) = KERNELS[name], program.shape
    given, parameters = [], []
    for value, (argument, how) in zip(program.args, kernel.arguments.items(), strict=True):
        if isinstance(how, jt.Sampler):
            given.append(texture_object(cupy, np.asarray(value), how))
            parameters.append(f"Texture {argument}")
        else:
            given.append(cupy.float32(value) if how == "number" else cupy.asarray(value))
            parameters.append(f"float {argument}" if how == "number" else f"const float* {argument}")
    code = HEADER.replace("OUT", kernel.out).replace("PARAMETERS", ", ".join(parameters)).replace("BODY", kernel.body)
    function = cupy.RawModule(code=code).get_function("kernel")
    channels = (4,) if kernel.out == "float4" else ()
    out = cupy.empty((height, width, *channels), cupy.float32)
    blocks = tuple(-(-n // m) for n, m in zip((width, height), BLOCK))

    def start() -> Any:
        function(blocks, BLOCK, (out, *given, np.int32(width), np.int32(height)))
        return out

    return Run(start, wait, as_jax)
