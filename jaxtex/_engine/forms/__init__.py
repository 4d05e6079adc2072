"""Which form of a primitive a program gets, and the forms for CPUs and for partitioned programs."""
