"""The pages of docs/ as a site: built by mkdocs, served at /docs/ by the web process."""
