import subprocess
import sys

HEAVY = ("openai", "httpx2", "numpy", "tiktoken", "django", "celery", "redis")


def test_importing_the_engine_loads_nothing_heavy() -> None:
    """openai alone is 29 MB, which neither the web processes nor the ingest parent shall pay."""
    code = (
        "import sys, engine.provider.openai_model, engine.provider.embedding, engine.provider.audio, engine.provider.offline, engine.provider.reply\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
