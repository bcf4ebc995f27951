"""Operates the platform as a whole: worker maintenance, periodic jobs, retention, people's data."""
