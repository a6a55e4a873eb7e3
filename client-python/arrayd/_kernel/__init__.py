"""Kernels of users: source text written or made here, compiled by the server, launched without waiting."""
