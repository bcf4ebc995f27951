"""Runs one assistant turn in plain Python: no Django, no Celery, no Redis."""
