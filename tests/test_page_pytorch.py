"""What the PyTorch reference says of masks, layouts, defaults and traps is measured here."""

import ast
import inspect
import math
import re
import warnings

import pages
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils._python_dispatch import TorchDispatchMode

import attention

PAGE = (pages.BOOK / "pytorch.md").read_text("utf-8")
B, N, D = 2, 3, 8
MAY, MAY_NOT, PAD, ADDED = (
    "True = may attend", "True = may *not* attend", "True = is padding", "added to the scores",
)  # fmt: skip


def mha(**options):
    return nn.MultiheadAttention(D, 2, batch_first=True, **options).eval()


def layer(kind, **options):
    return kind(D, 2, 16, dropout=0.0, batch_first=True, **options)


def answers(function, argument):
    """A function of (x, mask) to the outputs, for a row of the table of masks."""
    if function == "SDPA":
        return lambda x, m: F.scaled_dot_product_attention(x, x, x, attn_mask=m)
    if function == "MHA":
        made = mha()
        return lambda x, m: made(x, x, x, **{argument: m})[0]
    if function == "encoder layer":
        made = layer(nn.TransformerEncoderLayer)
        return lambda x, m: made(x, **{argument: m})
    if function == "decoder layer":
        made = layer(nn.TransformerDecoderLayer)
        # the source is what the mask is about: of `memory` or of the target itself
        if argument.startswith("memory"):
            own = torch.zeros(1, N, D)
            return lambda x, m: made(own.expand_as(x), x, **{argument: m})
        return lambda x, m: made(x, x[:, :1] * 0, tgt_mask=m)
    if function == "flex_attention":

        def flex(x, m):
            rule = create_block_mask(lambda b, h, i, j: m[i, j], None, None, N, N, device="cpu")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return flex_attention(*[x[:, None]] * 3, block_mask=rule)[:, 0]

        return flex
    assert function == "this book"
    return lambda x, m: attention.attention(x, x, x, m)[0]


def heard(run, mask):
    """Whether the first output depends on the last input."""
    x = torch.randn(B, N, D)
    other = x.clone()
    other[:, -1] += 1
    with torch.no_grad():
        return not torch.allclose(run(x, mask)[:, 0], run(other, mask)[:, 0], atol=1e-6)


def meaning(function, argument, kind):
    """What the mask means, found by asking whether the first token hears the last one."""
    run = answers(function, argument)
    if kind == "float":
        low = torch.zeros(N, N)
        low[0, -1] = -math.inf
        assert heard(run, torch.zeros(N, N)) and not heard(run, low)
        return ADDED
    if "padding" in argument:
        mask = torch.zeros(B, N, dtype=torch.bool)
        mask[:, -1] = True
        return PAD if not heard(run, mask) and heard(run, ~mask | (torch.arange(N) == 0)) else MAY
    one = torch.eye(N, dtype=torch.bool)
    one[0, -1] = True  # the diagonal, and the pair in question
    none = torch.eye(N, dtype=torch.bool)
    if heard(run, one) and not heard(run, none):
        return MAY
    assert heard(run, ~one) and not heard(run, ~none)
    return MAY_NOT


MASKS = pages.table("pytorch", "(pytorch-masks)=")[1:]


@pytest.mark.parametrize("row", MASKS, ids=lambda row: " ".join(row[:2]).replace("`", ""))
def test_a_mask_means_what_the_page_says(row):
    function, argument, said = row
    name, kind = argument.strip("`").split("`, ")
    assert meaning(function.strip("`"), name, kind) == said


def test_the_rows_of_masks_are_those_that_can_be_asked():
    assert len(MASKS) == 12 and {row[2] for row in MASKS} == {MAY, MAY_NOT, PAD, ADDED}


def mixes(run, x):
    """The axis of x along which one entry reaches the others."""
    found = []
    for axis in (0, 1):
        other = x.clone()
        other.select(axis, 0).add_(torch.randn(D))
        with torch.no_grad():
            changed = (run(other) - run(x)).abs().amax(-1) > 1e-6
        if changed.select(axis, -1).any():
            found.append(axis)
    assert len(found) == 1
    return found[0]


LAYOUT = {r[0].strip("`"): r[1:] for r in pages.table("pytorch", "(pytorch-layout)=")[1:]}


def test_the_layouts_are_those_of_the_page():
    x = torch.randn(4, 5, D)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would rather have batch_first
        small = nn.Transformer(D, 2, 1, 1, 16, dropout=0.0)
    attend, decode = nn.MultiheadAttention(D, 2), nn.TransformerDecoderLayer(D, 2, 16, 0.0)
    runs = {
        "SDPA": lambda x: F.scaled_dot_product_attention(x, x, x),
        "MHA": lambda x: attend(x, x, x)[0],
        "encoder layer": nn.TransformerEncoderLayer(D, 2, 16, dropout=0.0),
        "decoder layer": lambda x: decode(x, x * 0),
        "nn.Transformer": lambda x: small(x * 0, x),
        "this book": lambda x: attention.attention(x, x, x)[0],
    }  # fmt: skip
    assert set(runs) | {"flex_attention"} == set(LAYOUT)
    for name, run in runs.items():
        said = LAYOUT[name][0]
        assert mixes(run, x) == (0 if said == "(n, B, d_model)" else 1), name
        assert said.startswith(("(n, B", "(…, n, d)"))
    assert LAYOUT["flex_attention"][0] == "(B, h, n, d)"
    with pytest.raises(NotImplementedError, match="4D"):
        flex_attention(x, x, x)
    first = nn.MultiheadAttention(D, 2, batch_first=True)
    assert mixes(lambda x: first(x, x, x)[0], x) == 1


def test_what_comes_back():
    x = torch.randn(B, N, D)
    out, weights = mha()(x, x, x)
    assert out.shape == x.shape and weights.shape == (B, N, N)
    assert mha()(x, x, x, average_attn_weights=False)[1].shape == (B, 2, N, N)
    assert mha()(x, x, x, need_weights=False)[1] is None
    both = (layer(nn.TransformerEncoderLayer)(x), layer(nn.TransformerDecoderLayer)(x, x))
    assert all(isinstance(made, torch.Tensor) and made.shape == x.shape for made in both)
    assert "weights averaged over the heads" in LAYOUT["MHA"][1]


CALLED = {
    "scaled_dot_product_attention": None,
    "nn.MultiheadAttention": nn.MultiheadAttention,
    "nn.TransformerEncoderLayer": nn.TransformerEncoderLayer,
    "nn.TransformerDecoderLayer": nn.TransformerDecoderLayer,
    "nn.Transformer": nn.Transformer,
    "flex_attention": flex_attention,
    "F.cross_entropy": F.cross_entropy,
    "F.softmax": F.softmax,
}


def parameters(function):
    if function is None:  # a builtin: its first lines of help are its signature
        text = re.match(r"\s*(\w+\(.*?\)) ->", F.scaled_dot_product_attention.__doc__, re.S)[1]
        call = ast.parse(text, mode="eval").body
        first = {arg.id: inspect.Parameter.empty for arg in call.args}
        return first | {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    target = function.__init__ if inspect.isclass(function) else function
    return {name: p.default for name, p in inspect.signature(target).parameters.items()}


@pytest.mark.parametrize("name", CALLED)
def test_the_defaults_are_those_of_the_page(name):
    written = re.search(rf"`(?:\w+\.)?{re.escape(name)}\(([^`)]*=[^`)]*)\)`", PAGE)[1]
    known = parameters(CALLED[name])
    for part in written.split(","):
        argument, _, default = part.strip().partition("=")
        if argument == "…":
            continue
        assert argument in known, argument
        if default:
            value = known[argument]
            shown = getattr(value, "__name__", None) or value
            assert str(shown) == default.strip('"') or float(default) == value, part


def test_the_arguments_of_the_calls_are_those_of_the_page():
    calls = re.findall(r"called with `\(([^`]*)\)`", PAGE)
    kinds = nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
    assert len(calls) == len(kinds)
    for written, kind in zip(calls, kinds, strict=True):
        known = inspect.signature(kind.forward).parameters
        for part in written.split(", "):
            name, _, default = part.partition("=")
            shown = known[name].default
            assert default == ("" if shown is inspect.Parameter.empty else str(shown)), part


def test_the_traps_of_the_fused_function():
    q = torch.randn(1, 1, 2, 4)
    k = torch.randn(1, 1, 4, 4)
    sdpa = F.scaled_dot_product_attention
    first = torch.ones(2, 4).tril().bool()
    torch.testing.assert_close(sdpa(q, k, k, is_causal=True), sdpa(q, k, k, first))
    odd = torch.tensor([[True, False, False, False], [True, False, True, True]])
    with pytest.raises(RuntimeError, match="is_causal"), sdpa_kernel(SDPBackend.MATH):
        sdpa(q, k, k, attn_mask=odd, is_causal=True)
    both = sdpa(q, k, k, attn_mask=odd, is_causal=True)
    torch.testing.assert_close(both, sdpa(q, k, k, attn_mask=odd & first))
    assert not torch.equal(sdpa(k, k, k, dropout_p=0.5), sdpa(k, k, k))  # no model.eval() for it
    nothing = torch.zeros(2, 4, dtype=torch.bool)
    assert sdpa(q, k, k, nothing).eq(0).all()
    with pytest.raises(RuntimeError):
        sdpa(torch.randn(1, 4, 2, 4), *[torch.randn(1, 2, 2, 4)] * 2)  # no enable_gqa


class Names(TorchDispatchMode):
    """The operations that PyTorch runs."""

    seen = ""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += func.__name__
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("need, fused", [(True, False), (False, True)])
def test_only_without_weights_does_the_layer_use_a_fused_kernel(need, fused):
    x = torch.randn(B, 8, D)
    with Names() as names:
        mha().train()(x, x, x, need_weights=need)
    assert ("flash_attention" in names.seen) == fused


def test_the_traps_of_the_layer():
    x, made = torch.randn(B, N, D), mha().train()
    with pytest.raises(RuntimeError, match="attn_mask"):
        made(x, x, x, is_causal=True)
    open_mask, causal = torch.zeros(N, N).bool(), ~attention.causal_mask(N)
    free, past = (made(x, x, x, attn_mask=m)[0] for m in (open_mask, causal))
    for need, believed in ((True, free), (False, past)):
        hinted = made(x, x, x, attn_mask=open_mask, is_causal=True, need_weights=need)[0]
        torch.testing.assert_close(hinted, believed)
    pads = torch.tensor([[False] * N, [True] * N])
    assert made(x, x, x, key_padding_mask=pads)[0][1].isnan().all()
    assert made(x, x, x, key_padding_mask=pads, need_weights=False)[0].isfinite().all()
    bound = math.sqrt(6 / (3 * D + D))  # Glorot, for the stacked shape
    weight = nn.MultiheadAttention(D, 2).in_proj_weight.abs().max()
    assert weight <= bound and weight > 0.9 * bound


def test_the_traps_of_the_stacks():
    made = layer(nn.TransformerEncoderLayer)
    assert (2048 / 32, nn.TransformerEncoderLayer(32, 4).linear1.out_features) == (64, 2048)
    stack = nn.TransformerEncoder(made, 2)
    assert torch.equal(stack.layers[0].linear1.weight, stack.layers[1].linear1.weight)
    assert stack.norm is None
    x, pads = torch.randn(B, N, D), torch.tensor([[False] * N, [False, True, True]])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are called a prototype
        fast = stack.eval()(x, src_key_padding_mask=pads)
    assert fast[1, 1:].eq(0).all() and fast[1, 0].ne(0).any()
    whole = nn.Transformer(D, 2, 2, 2, 16, batch_first=True)
    first, second = (part.linear1.weight for part in whole.encoder.layers)
    assert not torch.equal(first, second)
    assert isinstance(whole.encoder.norm, nn.LayerNorm) and not whole.encoder.layers[0].norm_first
    decoder = layer(nn.TransformerDecoderLayer)
    assert heard(lambda x, _: decoder(x, x[:, :1] * 0), None)  # no causal mask by itself
    floats = nn.Transformer.generate_square_subsequent_mask(N)
    assert floats.eq(torch.zeros(N, N).masked_fill(causal := ~attention.causal_mask(N), -math.inf)
                     ).all() and causal.any()  # fmt: skip


def test_the_traps_of_the_plain_functions():
    with pytest.warns(UserWarning, match="Implicit dimension"):
        guessed = F.softmax(torch.randn(2, 3, 4))
    torch.testing.assert_close(guessed.sum(0), torch.ones(3, 4))  # the first of three
    assert F.softmax(torch.tensor([1000.0, 0.0]), -1).tolist() == [1, 0]
    assert inspect.signature(F.layer_norm).parameters["eps"].default == 1e-5
    assert inspect.signature(F.rms_norm).parameters["eps"].default is None
    assert 1e-7 < torch.finfo(torch.float32).eps < 2e-7
    assert {name for name, _ in nn.RMSNorm(4).named_parameters()} == {"weight"}
    assert {name for name, _ in nn.LayerNorm(4).named_parameters()} == {"weight", "bias"}
    assert F.cross_entropy(torch.randn(2, 3), torch.full((2,), -100)).isnan()
    with pytest.raises(RuntimeError):
        F.cross_entropy(torch.randn(2, 5, 7), torch.randint(7, (2, 5)))
    with pytest.raises(RuntimeError), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        F.scaled_dot_product_attention(*[torch.randn(1, 1, 2, 4)] * 3)
    with pytest.warns(FutureWarning, match="deprecated"), torch.backends.cuda.sdp_kernel():
        pass


def test_flex_attention_warns_without_compile_and_has_no_gradient_on_the_cpu():
    x = torch.randn(1, 1, 4, 4, requires_grad=True)
    with pytest.raises(NotImplementedError, match="backward on CPU"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flex_attention(x, x, x)


def test_every_door_has_its_cell():
    parts = re.split(r"^## ", PAGE, flags=re.M)[2:]  # after "At a glance"
    assert len(parts) == 8
    for part in parts:
        assert "```{code-cell}" in part and "assert_close" in part, part.splitlines()[0]
