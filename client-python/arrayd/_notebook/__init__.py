"""What people see in notebooks, and where an operation was issued."""
