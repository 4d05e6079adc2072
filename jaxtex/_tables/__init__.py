"""The meaning of modes: one row for each address mode, filter and storage dtype.

To add one, name it in `modes` (a storage dtype has its name already) and write its row here. The engine reads rows and
knows no mode by name. A row's optional fields say what the specialized paths may assume; by default they assume
nothing, and take the general path or raise an error.
"""
