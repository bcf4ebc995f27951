"""Name static files by their content once `collectstatic` has published them, as the image does.

Browsers then keep them for good, and get them compressed. What others link to (`amber-widget.js`) stays under its plain
name, too. Where nothing is published, as with `make run`, settings take Django's own storage.
"""

from typing import Any

from django.contrib.staticfiles.storage import StaticFilesStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage


class PublishedStaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise has no types
    def url(self, name: str, force: bool = False) -> Any:
        """Return the file's address; the plain one if it was not published: no page fails over a picture."""
        if self.hash_key(self.clean_name(name)) in self.hashed_files:
            return super().url(name, force=True)
        return StaticFilesStorage.url(self, name)
