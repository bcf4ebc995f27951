"""The pictures of docs/architecture.md show the apps and packages as their imports are."""

import pytest

from tests import house

PAGE = (house.ROOT / "docs" / "architecture.md").read_text()


@pytest.fixture(scope="module")
def arrows():
    return house.imports(house.modules())


def test_the_page_shows_the_apps(arrows):
    assert f"```mermaid\n{house.picture_of_apps(arrows)}\n```" in PAGE, "python -m tests.house"


def test_the_page_shows_the_packages_of_each_app(arrows):
    assert f"```mermaid\n{house.picture_of_packages(arrows)}\n```" in PAGE, "python -m tests.house"


def test_no_folder_is_a_list():
    """An app has at most 12 modules at its root, a package at most 15 (docs/architecture.md)."""
    for app in house.APPS:
        for folder in {path.parent for path in (house.ROOT / app).rglob("*.py")}:
            if not {"tests", "migrations"} & set(folder.relative_to(house.ROOT).parts):
                count = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
                assert count <= (12 if folder.name == app else 15), folder
