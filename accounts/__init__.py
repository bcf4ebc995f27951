"""Decide who may do what: organizations, users, keys, and the one door to a tenant's row."""
