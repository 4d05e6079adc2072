"""CUDA's memory as values: channel formats, arrays, pitched memory, and the copies between them.

`channel_formats` describes texels; `arrays` and `pitched_memory` hold them, `allocation` makes arrays, `array_queries`
describes them, and `releases` marks what is freed. `resource_descriptor` describes the memory that a texture or a
surface is made of. `copies` moves runs of bytes, `copies2d` and `copies3d` boxes of elements (`array_boxes`) and
regions of bytes (`byte_regions`), and `memsets` fills them; `numbers` says which numbers are accepted, and `bit_casts`
reinterprets bytes. `vectors` and `intrinsics` are functions of device code that make numbers.
"""

# pyright: strict
