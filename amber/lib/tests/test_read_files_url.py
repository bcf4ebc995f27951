"""AMBER_FILES_URL: what each address means, and what is said of a wrong one."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from amber.lib.storage.address import BUCKET, FOLDER, read_storage
from amber.lib.storage.bucket import is_public

NAME = "AMBER_FILES_URL"


def test_a_folder_and_a_bucket_are_read(monkeypatch):
    monkeypatch.delenv(NAME, raising=False)
    assert read_storage(NAME) is None
    monkeypatch.setenv(NAME, "file:///var/lib/my%20files")
    assert read_storage(NAME) == {
        "BACKEND": FOLDER,
        "OPTIONS": {"location": Path("/var/lib/my files")},
    }
    monkeypatch.setenv(
        NAME,
        "s3://files.example/amber/one/?endpoint=https://s3.example.com&region=eu-central-1"
        "&sse=aws:kms&kms_key=alias/amber&addressing=path&links=0",
    )
    found = read_storage(NAME)
    assert found == {
        "BACKEND": BUCKET,
        "OPTIONS": {
            "bucket_name": "files.example",
            "location": "amber/one",
            "endpoint_url": "https://s3.example.com",
            "region_name": "eu-central-1",
            "addressing_style": "path",
            "object_parameters": {
                "ServerSideEncryption": "aws:kms",
                "SSEKMSKeyId": "alias/amber",
            },
            "links": False,
        },
    }


WRONG = {
    "/var/files": "must have the form file:///folder or s3://bucket",
    "https://s3.example.com/bucket": "must have the form",
    "file://server/files": "whole path",
    "file:///": "whole path",
    "file:///files?region=x": "whole path",
    "s3://": "must name a bucket",
    "s3:///prefix": "must name a bucket",
    "s3://Bucket_Name": "must name a bucket",
    "s3://KEY:hush@bucket": "must not hold keys",
    "s3://bucket/a/../b": "has a prefix",
    "s3://bucket/a//b": "has a prefix",
    "s3://bucket/%00": "has a prefix",
    "s3://bucket?endpoint=s3.example.com": "no address like https://",
    "s3://bucket?endpoint=https://key:hush@s3.example.com": "no address like",
    "s3://bucket?endpoint=https://s3.example.com:x": "no address like",
    "s3://bucket?sse=rot13": "must be one of AES256, aws:kms",
    "s3://bucket?kms_key=alias/x": "needs sse=aws:kms",
    "s3://bucket?links=maybe": "must be one of 0, 1",
    "s3://bucket?regoin=x": "known are addressing, endpoint",
    "s3://bucket?region=a&region=b": "a parameter twice",
}


def test_a_wrong_address_gets_one_sentence_without_secrets(monkeypatch):
    for url, sentence in WRONG.items():
        monkeypatch.setenv(NAME, url)
        with pytest.raises(ImproperlyConfigured) as refused:
            read_storage(NAME)
        said = str(refused.value)
        assert said.startswith(NAME), url
        assert sentence in said, url
        assert said.endswith("."), url
        assert "hush" not in said


def test_only_endpoints_of_the_internet_are_public():
    endpoints = {
        None: True,
        "https://s3.example.com": True,
        "https://s3.example.com:9000": True,
        "http://s3.example.com": False,
        "https://minio:9000": False,
        "https://minio.internal": False,
        "https://10.1.2.3": False,
        "https://[::1]:9000": False,
    }
    assert {each: is_public(each) for each in endpoints} == endpoints
