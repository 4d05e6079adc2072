"""The choice of a primitive's form, and the forms for CPUs and for partitioned programs."""
