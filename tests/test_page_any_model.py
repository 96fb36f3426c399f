"""The page that looks into any model: its cells show what its prose says of them.

The notebook's test runs the same cells with transformers, in an environment like Colab's.
"""

import ast
import base64
import json
import sys
import types

import numpy as np
import pages
import pytest
import test_prose
import torch

ROOT = pages.BOOK.parent
PAGE = (pages.BOOK / "any-model.md").read_text("utf-8")
CELLS = ["\n".join(test_prose.code(cell[2])) for cell in test_prose.CELL.finditer(PAGE)]
START, PYTORCH, TALES, TRAIN, CROSS, HUGGING_FACE, DOWNLOAD = CELLS


def run(code, names):
    """Run a cell; return what its last line shows."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return last and eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.fixture(scope="module")
def names():
    found, threads = {}, torch.get_num_threads()
    run(START, found)
    found["first"] = run(PYTORCH, found)
    found["weights_of_layer"] = found["weights"]
    found["tales"] = run(TALES, found)
    yield found
    torch.set_num_threads(threads)


def test_head_0_of_the_layer_is_that_of_chapter_2_and_head_1_is_nearly_even(names):
    it, cat = (names["words"].index(word) for word in ("it", "cat"))
    first, second = names["first"].weights[0, :, it]
    assert first.argmax() == cat and first[cat] > 0.9
    assert (second - 0.1).abs().max() < 0.02
    mean = names["mha"](*[names["x"]] * 3)[1]
    torch.testing.assert_close(mean, names["weights_of_layer"].mean(1))
    assert names["mha"](*[names["x"]] * 3, need_weights=False)[1] is None


def test_a_head_of_the_tales_looks_from_it_to_cat(names):
    view = names["tales"]
    assert view.tokens[view.query] == " it"
    row = view.weights[view.layer, view.head, view.query]
    assert view.tokens[row.argmax()] == " cat"
    before = view.weights[0].diagonal(-1, 1, 2).mean(-1)  # what is asked of the reader
    assert (before > 0.5).sum() >= 2


def test_gris_looks_at_grey_one_word_back():
    """In the view that the build made: its own training takes a second or two."""
    ran = json.loads((ROOT / "_build/jupyter_execute/book/any-model.ipynb").read_text("utf-8"))
    widgets = ran["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    (view,) = [w["state"] for w in widgets.values() if w["state"].get("tokens_k")]
    packed = np.frombuffer(base64.b64decode(view["weights"]["data"]), "<u2")
    weights = packed.reshape(view["weights"]["shape"])
    assert weights.shape == (2, 2, 8, 7) and view["tokens"][view["query"]] == "gris"
    at = [view["tokens_k"][j] for j in weights[view["layer"], view["head"]].argmax(-1)]
    assert at[1:3] == ["cat", "grey"]


def test_without_transformers_a_model_of_the_same_size_is_shown(names, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "transformers", None)
    view = run(HUGGING_FACE, dict(names))
    assert "transformers is not installed here" in capsys.readouterr().out
    assert view.weights.shape == (4, 4, 15, 15)
    even = view.weights / view.weights.amax(-1, keepdim=True)
    assert "about equally" in PAGE and even[..., -1, :].median() > 0.4


def test_the_cell_for_colab_downloads_only_where_its_box_is_ticked(names, monkeypatch):
    asked, shown = [], []

    class Any:
        @classmethod
        def from_pretrained(cls, name, **options):
            asked.append((name, options))
            return cls()

        def __call__(self, text, output_attentions=False, **more):
            if more:
                return types.SimpleNamespace(input_ids=torch.arange(3)[None])
            assert output_attentions
            return types.SimpleNamespace(attentions=(torch.eye(3).expand(1, 12, 3, 3),) * 12)

        def decode(self, token):
            return f"word {int(token)}"

    fake = types.SimpleNamespace(AutoModel=Any, AutoTokenizer=Any)
    monkeypatch.setitem(sys.modules, "transformers", fake)
    own = names | {"display": shown.append}
    run(DOWNLOAD, own)
    assert (asked, shown) == ([], [])
    run(DOWNLOAD.replace("download = False", "download = True"), own)
    assert asked == [("gpt2", {"attn_implementation": "eager"}), ("gpt2", {})]
    assert shown[0].weights.shape == (12, 12, 3, 3) and shown[0].tokens[2] == "word 2"
