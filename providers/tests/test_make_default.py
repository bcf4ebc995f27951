import pytest

from amber.lib.errors import Invalid
from providers import services
from providers.models import EmbeddingModel, LanguageModel

pytestmark = pytest.mark.django_db


def test_there_is_one_default_afterwards(new_model):
    old, new = new_model("old", default=True), new_model("new")
    assert services.make_default(new).default
    old.refresh_from_db()
    assert not old.default
    assert LanguageModel.objects.get(default=True) == new


def test_making_the_default_the_default_is_nothing(new_model):
    model = new_model("m", default=True)
    services.make_default(model)
    assert LanguageModel.objects.get(default=True) == model


def test_a_disabled_model_is_refused(new_model):
    old, off = new_model("old", default=True), new_model("off", enabled=False)
    with pytest.raises(Invalid, match="off is disabled"):
        services.make_default(off)
    assert LanguageModel.objects.get(default=True) == old


def test_only_a_seeing_model_reads_images(new_model):
    old = new_model("old", vision=True, default_vision=True)
    with pytest.raises(Invalid, match="images"):
        services.make_default_vision(new_model("blind"))
    assert LanguageModel.objects.get(default_vision=True) == old
    new = services.make_default_vision(new_model("new", vision=True))
    assert LanguageModel.objects.get(default_vision=True) == new


def test_there_is_one_default_embedding_model_afterwards(new_embedding_model):
    new_embedding_model("old", default=True)
    new = new_embedding_model("new")
    services.make_default(new)
    assert EmbeddingModel.objects.get(default=True) == new
    with pytest.raises(Invalid):
        services.make_default(new_embedding_model("off", enabled=False))
