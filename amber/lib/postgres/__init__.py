"""Django's backend for Postgres, with a pool that is back as soon as Postgres is (`base`)."""
