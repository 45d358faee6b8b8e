"""AMD GPUs through the HIP runtime library; driver.py is the door."""
