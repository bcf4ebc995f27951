"""Python imports this in every process that has this folder on its path."""

import os

if folder := os.environ.get("AMBER_ANATOMY"):
    from bench.anatomy import recorder

    recorder.start(folder)
