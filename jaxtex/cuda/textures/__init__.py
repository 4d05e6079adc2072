# pyright: strict

"""CUDA's textures: how one is made of memory and a descriptor, and the functions that read it.

`texture_objects` and `texture_references` make a `TextureObject`: `descriptors` says how it is read, `resources` and
`resource_views` find its texels, and `format_checks` refuses what CUDA refuses. `tex_functions` holds the public
functions of device code, and `tex_dispatch` turns each of them into one read of the core.
"""
