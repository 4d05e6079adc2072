"""CUDA's memory as values: channel formats, arrays, pitched memory, and the copies between them.

`channel_formats` describes texels; `arrays` and `pitched_memory` hold them, and `allocation` makes and frees arrays.
`resource_descriptor` describes the memory that a texture or a surface is made of. `regions` are parts of memory and of
arrays; `copies` moves runs and rows of bytes, and `copies3d` boxes. `numbers` says which numbers are accepted, and
reinterprets bytes. `device_numbers` holds functions of device code that make numbers.
"""
