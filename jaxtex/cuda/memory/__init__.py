# pyright: strict

"""CUDA's memory as values: channel formats, arrays, pitched memory, and the copies between them.

`channel_formats` says what a texel is, `arrays` and `pitched_memory` hold texels, and `resource_descriptor` names the
memory that a texture or a surface is made of. `copies` and `copies3d` move boxes of elements (`array_boxes`) and of
bytes (`byte_regions`); `bit_casts` reinterprets bytes.
"""
