"""CUDA's memory as values: channel formats, arrays, pitched memory, and the copies between them.

`channel_formats` describes texels; `arrays` and `pitched_memory` hold them, and `copies` moves them. `numbers` says
which numbers are accepted, and reinterprets bytes.
"""
