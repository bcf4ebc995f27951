"""What the image takes is little, and nothing that it should not have; `make check-image` runs its steps."""

from pathlib import Path

from tests.installation.image_steps import FOLDERS, Image, copied, is_ignored, steps

ROOT = Path(__file__).parents[2]
MOST_MB = 20
STAGES = steps((ROOT / "Dockerfile").read_text())


def test_what_is_copied_is_small_and_neither_tests_nor_secrets():
    taken = list(copied())
    assert sum((ROOT / path).lstat().st_size for path in taken) < MOST_MB * 2**20
    parts = {part for path in taken for part in path.parts}
    assert parts.isdisjoint({".git", ".env", ".venv", "tests", "bench", "node_modules", "var"})
    for needed in (
        "manage.py",
        "requirements.txt",
        "docs/README.md",
        "web/index.html",
        "mkdocs.yml",
    ):
        assert Path(needed) in taken


def test_patterns_are_read_as_an_engine_does():
    assert is_ignored(Path("a/b/tests"), ["**/tests"])
    assert is_ignored(Path("tests"), ["**/tests"])
    assert is_ignored(Path("var"), ["var"])
    assert not is_ignored(Path("a/var"), ["var"])
    assert not is_ignored(Path("a/latests"), ["**/tests"])


def test_what_runs_is_a_stage_of_its_own_without_root_and_with_a_health_check():
    _, run = STAGES
    assert not [rest for instruction, rest in run if instruction == "RUN" and "pip" in rest]
    assert {rest.split()[0] for instruction, rest in run if instruction == "COPY"} == {
        "--from=build"
    }
    instructions = [instruction for instruction, _ in run]
    assert dict(run)["USER"] == "10001"
    assert {"HEALTHCHECK", "CMD", "VOLUME"} <= set(instructions[instructions.index("USER") :])


def test_folders_of_the_image_are_moved():
    image = Image(Path("/tmp/image"))
    moved = image.moved("python -m venv /venv && /venv/bin/pip x && ls /amber /tmp/var")
    assert moved == (
        "python -m venv /tmp/image/venv && /tmp/image/venv/bin/pip x"
        " && ls /tmp/image/amber /tmp/image/tmp/var"
    )
    assert all(image.moved(each) == f"/tmp/image{each}" for each in FOLDERS)
