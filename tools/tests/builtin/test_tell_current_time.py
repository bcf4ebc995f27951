from dataclasses import replace

import pytest

from tools.builtin.current_time import current_time
from tools.protocol import ToolError


def test_tells_the_time_in_the_users_zone(context):
    assert current_time(context) == "2026-03-02 06:05:09 (Monday), Asia/Shanghai, UTC+08:00"


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("UTC", "2026-03-01 22:05:09 (Sunday), UTC, UTC+00:00"),
        ("America/St_Johns", "2026-03-01 18:35:09 (Sunday), America/St_Johns, UTC-03:30"),
        (" Europe/Berlin ", "2026-03-01 23:05:09 (Sunday), Europe/Berlin, UTC+01:00"),
    ],
)
def test_tells_the_time_elsewhere(context, zone, told):
    assert current_time(context, zone) == told


@pytest.mark.parametrize("zone", ["Mars/Base", "../../etc/passwd", "/etc/passwd", "Europe", "a\0b"])
def test_an_unknown_zone_is_explained(context, zone):
    with pytest.raises(ToolError, match="is no time zone"):
        current_time(context, zone)


@pytest.mark.parametrize("zone", ["", "nonsense"])
def test_a_user_without_a_zone_is_told_utc(context, zone):
    assert current_time(replace(context, time_zone=zone)).endswith("UTC, UTC+00:00")
