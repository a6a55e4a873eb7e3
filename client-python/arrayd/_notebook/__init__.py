"""Displays for notebooks, and the lines where operations were issued."""
