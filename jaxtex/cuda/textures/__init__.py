"""CUDA's textures: texture objects, which are made of memory and a descriptor, and the functions that read them.

`texture_objects` makes a `TextureObject`, and says what it was made of. `texture_references` declares references, and
`texture_binding` binds them. `descriptors` describes how a texture is read, and `resources` finds its texels.
`texture_functions` makes the functions of device code, each call of which is one read of the core.
"""

# pyright: strict
