from libraries.tests.stored_files import stored

LIST = "/admin/libraries/file/"


def test_shows_whose_and_what_but_not_the_words(operator, alice):
    file = stored(alice, "note of alice.txt", b"Words of alice")
    for page in (operator.get(LIST), operator.get(f"{LIST}{file.pk}/change/")):
        assert page.status_code == 200
        shown = page.content.decode()
        assert str(file.pk) in shown
        assert "alice@example.com" in shown
        assert "note of alice.txt" in shown
        for hidden in ("Words of alice", file.path):
            assert hidden not in shown


def test_finds_by_owner(operator, alice, bob):
    of_alice, of_bob = stored(alice), stored(bob)
    shown = operator.get(LIST, {"q": "bob@"}).content.decode()
    assert str(of_bob.pk) in shown
    assert str(of_alice.pk) not in shown


def test_changes_nothing(operator, alice):
    file = stored(alice)
    assert operator.get(f"{LIST}add/").status_code == 403
    assert operator.post(f"{LIST}{file.pk}/delete/", {"post": "yes"}).status_code == 403
    assert operator.post(f"{LIST}{file.pk}/change/", {"mime_type": "x"}).status_code == 403
