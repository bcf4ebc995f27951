"""Install LiteLLM's gateway, and say how it is started: a yardstick that many people know.

It gets a venv of its own below var/, which stays for the next run. It stores nothing and asks for no
key here, as the bare proxy.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

import orjson

VERSION: Final = "1.106.2"
ENVIRON: Final = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}


def install(venv: Path) -> Path:
    """Return the Python of a venv that holds the gateway; the first time takes minutes.

    Raises CalledProcessError.
    """
    python, installed = venv / "bin" / "python", venv / "installed"
    if not installed.exists() or installed.read_text() != VERSION:
        installed.unlink(missing_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, f"litellm[proxy]=={VERSION}"], check=True)
        installed.write_text(VERSION)
    return python


def command(python: Path, folder: Path, *, provider_url: str, port: int) -> list[str]:
    """Write its configuration into the folder; return what starts it on 127.0.0.1."""
    config = folder / "litellm.yaml"  # YAML holds all JSON
    every = {"model": "openai/*", "api_base": provider_url, "api_key": "fake"}
    models = {"model_list": [{"model_name": "*", "litellm_params": every}]}
    config.write_bytes(orjson.dumps(models))
    script = str(python.with_name("litellm"))
    return [script, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
