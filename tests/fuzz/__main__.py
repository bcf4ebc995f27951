"""`python -m tests.fuzz <file>`: the file holds a JSON list of operations. Prints `cast_for` them."""

import json
import sys
from pathlib import Path

import django


def main(file: str) -> None:
    django.setup()
    from tests.fuzz.cast import cast_for

    sys.stdout.write(json.dumps(cast_for(json.loads(Path(file).read_text()))))


if __name__ == "__main__":
    main(sys.argv[1])
