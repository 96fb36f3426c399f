"""What an explorer says of an argument that it does not have."""

import pytest
import traitlets

from attention import widgets

CLASSES = [getattr(widgets, name) for name in widgets.__all__ if name[0].isupper()]
CLASSES = [cls for cls in CLASSES if cls not in (widgets.Explorer, widgets.Question)]


@pytest.mark.parametrize("cls", CLASSES)
def test_a_misspelt_argument_is_refused_by_name(cls):
    with pytest.raises(traitlets.TraitError) as caught:
        cls(heat=9.0)
    sentence = str(caught.value)
    assert sentence.startswith(f"{cls.__name__} has no 'heat'; it has ")
    names = sentence.partition("it has ")[2].split(", ")
    assert names == sorted(names) and all(hasattr(cls, name) or name == "preset" for name in names)
    assert not {"layout", "comm", "keys", "self", "traits"} & set(names)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_trait_of_its_own_may_be_given(cls):
    widget = cls()
    own = widget.trait_names(sync=True)
    own = set(own) - set(widgets.Explorer.class_trait_names(sync=True))
    own = {name for name in own if not name.startswith("_")} - {"cells"}  # a pattern of its own
    again = cls(**{name: getattr(widget, name) for name in own}, layout={"width": "50%"})
    assert {name: getattr(again, name) for name in own} == {n: getattr(widget, n) for n in own}
    assert again.layout.width == "50%"


def test_a_string_is_no_list_of_labels():
    with pytest.raises(traitlets.TraitError, match="labels must be a list of 2 to 12 tokens; got"):
        widgets.Masks(labels="abc")
