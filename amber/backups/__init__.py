"""Back up and restore one installation: a dump of the database, and an archive of its files.

    manage.py backup [FOLDER]         makes both, while Amber runs or while it does not
    manage.py restore DUMP FILES      brings both back, all or nothing; only while Amber is stopped

The archive carries a manifest (what was dumped, and how much of it), so that a restore is checked
before it is committed. It refuses to hold `AMBER_SECRET_KEYS`: with the dump they would open every
stored key.
"""
