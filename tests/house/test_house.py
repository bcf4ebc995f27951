"""The pictures of docs/architecture.md show the apps and packages as their imports are."""

import pytest

from tests.house import structure

PAGE = (structure.ROOT / "docs" / "architecture.md").read_text()
MOST_IN_A_FOLDER_OF_TESTS = 25


@pytest.fixture(scope="module")
def arrows():
    return structure.imports(structure.modules())


def test_the_page_shows_the_apps(arrows):
    assert f"```mermaid\n{structure.picture_of_apps(arrows)}\n```" in PAGE, (
        "python -m tests.house.structure"
    )


def test_the_page_shows_the_packages_of_each_app(arrows):
    assert f"```mermaid\n{structure.picture_of_packages(arrows)}\n```" in PAGE, (
        "python -m tests.house.structure"
    )


def test_no_folder_is_a_list():
    """An app has at most 12 modules at its root, a package at most 15 (docs/architecture.md)."""
    for app in structure.APPS:
        for folder in {path.parent for path in (structure.ROOT / app).rglob("*.py")}:
            if not {"tests", "migrations"} & set(folder.relative_to(structure.ROOT).parts):
                count = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
                assert count <= (12 if folder.name == app else 15), folder


def test_no_folder_of_tests_is_a_list():
    for root in (*structure.APPS, "tests"):
        for folder in {path.parent for path in (structure.ROOT / root).rglob("*.py")}:
            if "tests" in folder.relative_to(structure.ROOT).parts:
                count = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
                assert count <= MOST_IN_A_FOLDER_OF_TESTS, folder
