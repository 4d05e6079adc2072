"""What a machine has: packages, devices, and the folder of compiled programs."""
