"""The gather kernel of the adjoint: a thread owns texels, and looks for their samples."""
