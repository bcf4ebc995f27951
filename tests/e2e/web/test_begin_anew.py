"""Tests of a module share a browser that has the page's files; one finds nothing else of another in it."""

import pytest

from tests.e2e.web.conftest import empty

pytestmark = pytest.mark.e2e


def test_only_the_pages_files_go_from_one_test_to_the_next(visit):
    left = visit().open()
    left.page.evaluate("localStorage.setItem('left', 'behind')")
    assert left.context.cookies()
    left.context.set_offline(True)
    empty(left.context, origin=left.base)
    assert left.page.is_closed()
    assert not left.context.cookies()
    here = visit(beside=left).open()
    assert here.page.evaluate("localStorage.getItem('left')") is None
    here.page.wait_for_url("**/sign-in*")
