"""Arrays for other libraries and other processes."""
