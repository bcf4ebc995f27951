"""Keep the bytes of files: in a folder, in a bucket of S3, or in both while they move.

    address     reads AMBER_FILES_URL into Django's STORAGES
    files       what every storage can do, and the installation's own
    folder, bucket, moving      the three storages

All of them raise OSError when they cannot be reached, and FileNotFoundError for what is not there, so
that callers know one kind of fault. What talks to S3 (boto3, 30 MB) is loaded where it is used.
"""
