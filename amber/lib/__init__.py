"""Holds what every app may use, one topic per module; imports no app."""
