"""Arrays in files, and how far a transfer is."""
