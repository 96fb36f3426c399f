"""What every check says of an answer that is no answer yet."""

import importlib

import pytest
import torch

from attention.checks._base import NotYet

CHAPTERS = ["motivation", "qkv", "scaling", "multi_head", "positions", "masking", "blocks"]
MODULES = [importlib.import_module(f"attention.checks.{chapter}") for chapter in CHAPTERS]
CHECKS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
}


def my_answer(*args, **kwargs):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (my_answer, "my_answer is still the stub"),
        (lambda *args, **kwargs: None, "forget `return`"),
        (3, "pass the function itself; got int"),
    ],
)
@pytest.mark.parametrize("name", CHECKS)
def test_no_answer_is_told_so(name, answer, sentence):
    with pytest.raises(NotYet, match=sentence):
        CHECKS[name](answer)


@pytest.mark.parametrize("name", CHECKS)
def test_a_constant_is_refused(name):
    with pytest.raises(NotYet):
        CHECKS[name](lambda *args, **kwargs: torch.zeros(1))
