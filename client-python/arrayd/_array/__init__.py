"""Arrays: making them, their shapes and their elements, and what NumPy asks of them."""
