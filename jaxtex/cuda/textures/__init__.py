"""CUDA's textures: texture objects, made of memory and a descriptor, and the functions that read them.

`texture_objects` makes texture objects, finds their texels, and queries them. `texture_references` declares and binds
references. `texture_functions` makes the functions of device code, each call of which is one read of the core.
"""
