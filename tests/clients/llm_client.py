"""The `llm` command against /v1; prints what it saw as one JSON object. Runs in a venv of its own.

It knows the addresses it asks from a file, and tells no names of errors: models and kinds of
failures are left out.
"""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

MARKERS = json.loads(os.environ["MARKERS"])
COMMAND = Path(sys.executable).parent / "llm"
WEATHER = '''
def weather(city: str) -> str:
    """The weather there."""
    return f"Rain in {city} for llm"
'''


def llm(*arguments: str) -> str:
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


def register() -> None:
    """The model `amber` of this client: its address and its key."""
    card = {
        "model_id": "amber",
        "model_name": "fake-model",
        "api_base": os.environ["AMBER_URL"],
        "api_key_name": "amber",
        "supports_tools": True,
    }
    absent = {**card, "model_id": "nobody", "model_name": "absent"}
    eyes = {**card, "model_id": "eyes", "model_name": "fake-vision", "vision": True}
    home = Path(os.environ["LLM_USER_PATH"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "extra-openai-models.yaml").write_text(json.dumps([card, absent, eyes]))  # JSON is YAML
    llm("keys", "set", "amber", "--value", os.environ["AMBER_KEY"])


def image() -> str:
    """What a model that says what it was sent says of one."""
    path = Path(os.environ["HOME"]) / "image.png"
    path.write_bytes(base64.b64decode(MARKERS["image"].partition(",")[2]))
    return llm("-m", "eyes", "--no-stream", "What is it?", "-a", str(path))


def leave_early() -> None:
    command = [COMMAND, "-m", "amber", MARKERS["slow"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.read(1)
        running.terminate()


def failure() -> str:
    done = subprocess.run([COMMAND, "-m", "nobody", "x"], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main() -> None:
    register()
    seen = {
        "whole": llm("-m", "amber", "--no-stream", MARKERS["words"]),
        "streamed": llm("-m", "amber", MARKERS["words"]),
        "after_call": llm("-m", "amber", "--functions", WEATHER, MARKERS["call"]),
        "image": image(),
        "said_of_no_model": failure(),
    }
    leave_early()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
