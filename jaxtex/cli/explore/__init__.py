"""`jaxtex explore`: a page in the browser that warps one picture while options change."""
