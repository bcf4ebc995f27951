"""Amber: a self-hosted, multi-tenant assistant platform backend."""
