import pytest

from tests.service.text.constraints.words import COMPILERS


@pytest.fixture(params=COMPILERS)
def compiler(request):
    """Compile for each tokenizer."""
    return COMPILERS[request.param]
