"""What stands in a page's script can neither end it nor hide its end."""

import json
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

sys.path.insert(0, str(Path(__file__).parents[1] / "book" / "_ext"))

import explorers  # noqa: E402


@pytest.mark.parametrize("label", ["</script>", "<!--<script>", "<!--", "a < b", "plain"])
def test_no_label_reaches_beyond_its_script(label):
    state = explorers.in_script({"label": label})
    assert "<" not in state and json.loads(state) == {"label": label}
    page = f'<script type="application/json">{state}</script><p>after</p>'
    assert BeautifulSoup(page, "html.parser").p.text == "after"
