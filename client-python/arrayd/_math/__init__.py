"""Functions of arrays: mathematics, reductions, sorting, statistics, products."""
