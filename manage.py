#!/usr/bin/env python
"""Run Amber's commands in the environment of this installation.

Beside Django's commands there is `up`, which runs everything and never loads Django: the
process that stays is a small supervisor. Every other command finds the secrets and the database
of this folder's last `up`, so `manage.py create_account` works in a second terminal. The
environment comes first, then `.env`, then what `up` remembers.
"""

import os
import sys
from pathlib import Path

from dotenv import load_dotenv

from amber import installation, up
from amber.lib.workers import garbage
from amber.processes import name_process

HERE = Path(__file__).resolve().parent


def main() -> int:
    load_dotenv(HERE / ".env")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
    _set_default("AMBER_VAR_DIR", str(HERE / "var"))
    if sys.argv[1:2] == ["up"] and not {"-h", "--help"} & {*sys.argv}:
        return up.main(sys.argv[2:])
    command = sys.argv[1] if len(sys.argv) > 1 else "command"
    os.environ.setdefault("AMBER_CONNECT_AS", "owner")  # an operator's hand, which no policy binds
    name_process(command)
    garbage.put_off()
    with up.postgres_for(command):
        for name, value in installation.read_kept(Path(os.environ["AMBER_VAR_DIR"])).items():
            _set_default(name, value)
        # `up` must not pay for these.
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line

        try:
            execute_from_command_line(sys.argv)
        except ImproperlyConfigured as wrong:
            sys.exit(f"{wrong}{_hint()}")
    return 0


def _set_default(name: str, value: str) -> None:
    """Set what the environment does not give; an empty value is none."""
    os.environ[name] = os.environ.get(name) or value


def _hint() -> str:
    """Return what to do where no installation is found, whose secrets are then missing."""
    folder = Path(os.environ["AMBER_VAR_DIR"])
    if "AMBER_SECRET_KEYS" in os.environ:
        return ""
    return f"\nThere is no installation in {folder}. AMBER_VAR_DIR names its folder, and `manage.py up` makes one."


if __name__ == "__main__":
    sys.exit(main())
