"""Measure what partitions cost and save (docs/scaling.md)."""
