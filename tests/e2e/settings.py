"""Amber's settings with one tool more, whose calls last: for workers that die during a call."""

from amber.settings import *  # noqa: F403
from amber.settings import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.e2e"]
