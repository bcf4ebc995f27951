"""The Celery app. Celery is a doorbell: the work is rows that know their own state."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")

app = Celery("amber")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
