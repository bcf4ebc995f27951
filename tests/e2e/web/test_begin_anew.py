"""A test's window is the one of the test before, and knows nothing of it."""

import pytest

pytestmark = pytest.mark.e2e


def test_a_window_forgets_what_a_test_left_in_it(visit, used_window):
    here = visit().open()
    here.composer.wait_for()
    here.page.evaluate(
        "() => { localStorage.setItem('left', 'behind'); sessionStorage.setItem('left', 'behind'); }"
    )
    beside = visit(beside=here)
    assert here.context.cookies()
    here.page.set_viewport_size({"width": 390, "height": 844})
    here.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    here.page.route("**/sign-in*", lambda route: route.abort())
    here.context.set_offline(True)
    used_window.empty(here.base)
    assert beside.page.is_closed()
    assert not here.context.cookies()
    left = here.page.evaluate("() => [localStorage.length, sessionStorage.length, innerWidth]")
    assert left == [0, 0, 1280]
    for query in ("(prefers-color-scheme: dark)", "(prefers-reduced-motion: reduce)"):
        assert not here.page.evaluate("(query) => matchMedia(query).matches", query)
    here.open()
    here.page.wait_for_url("**/sign-in*")


def test_a_window_that_was_closed_is_another(visit, used_window, browser):
    here = visit().open()
    here.page.close()
    used_window.empty(here.base)
    assert used_window.take(browser) is not here.page
    assert not used_window.take(browser).context.cookies()
