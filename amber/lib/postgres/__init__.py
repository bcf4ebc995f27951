"""Adapts Django's backend for Postgres: its pool recovers as soon as Postgres does (`base`)."""
