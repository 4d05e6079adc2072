"""CUDA's textures: texture objects, which are made of memory and a descriptor, and the functions that read them.

`texture_objects` makes a `TextureObject`, and `texture_queries` says what it was made of. `texture_references` declares
references, and `texture_binding` binds them. `descriptors` describes how a texture is read, `resources` and
`resource_views` find its texels, and `format_checks` refuses the formats and modes that CUDA refuses. `tex_functions`
holds the functions of device code, with `tex_docstrings`; `tex_dispatch` turns each call into one read of the core.
"""

# pyright: strict
