"""CUDA's memory as values: channel formats, arrays, pitched memory, and the copies between them.

`channel_formats` describes texels; `arrays` and `pitched_memory` hold them, and `allocation` makes arrays.
`resource_descriptor` describes the memory that a texture or a surface is made of. `copies` and `copies3d` move boxes of
elements (`array_boxes`) and regions of bytes (`byte_regions`); `bit_casts` reinterprets bytes.
"""

# pyright: strict
