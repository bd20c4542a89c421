import pytest

from service.errors import InvalidSettings, UnknownModel
from service.runtime.models import ModelRegistry
from tests.service.runtime.doubles import loaded_model

FIRST = loaded_model(name="first", aliases=("one", "uno"))
SECOND = loaded_model(name="second")
REGISTRY = ModelRegistry((FIRST, SECOND))


@pytest.mark.parametrize(
    ("name", "model"),
    [("", FIRST), ("first", FIRST), ("uno", FIRST), ("second", SECOND)],
)
def test_registry_finds_a_model_by_name_alias_or_default(name, model):
    assert REGISTRY.find(name) is model


def test_registry_refuses_an_unknown_name_with_those_it_knows():
    with pytest.raises(UnknownModel) as caught:
        REGISTRY.find("third")
    assert ("third", ("first", "second")) == (caught.value.model, caught.value.loaded)


def test_registry_lists_the_default_model_first():
    assert (FIRST, SECOND) == REGISTRY.all()


def test_registry_without_models_or_with_one_name_twice_is_refused():
    with pytest.raises(InvalidSettings, match="no model"):
        ModelRegistry(())
    with pytest.raises(InvalidSettings, match="'one'"):
        ModelRegistry((FIRST, loaded_model(name="one")))
