"""The checks of chapter 2 accept right answers and name the fault of wrong ones."""

import math

import pytest
import torch

from attention import FEATURES, attention
from attention.checks import qkv as check
from attention.checks._base import NotYet


def accepted(name, answer, capsys):
    getattr(check, name)(answer)
    assert "Right" in capsys.readouterr().out


def rejected(name, answer, phrase):
    with pytest.raises(NotYet) as error:
        getattr(check, name)(answer)
    assert phrase in str(error.value)


# ---- the last word finds its noun


def _rows(d_k=1, **entries):
    """A matrix (6, d_k) with these entries in its first column, by feature."""
    w = torch.zeros(6, d_k)
    for name, value in entries.items():
        w[FEATURES.index(name), 0] = value
    return w


KEY = _rows(alive=1.0, place=-1.0)


def test_ending_accepts_another_way(capsys):
    w_q, w_k = torch.zeros(6, 3), torch.zeros(6, 3)
    w_q[3], w_q[4] = torch.tensor([9.0, 9.0, 0]), torch.tensor([9.0, -9.0, 0])
    w_k[0, 0], w_k[1, 1] = 1.0, 1.0
    accepted("ending", lambda: [w_q, w_k], capsys)


ENDING = {
    "pronoun asks": (lambda: (_rows(pronoun=8.0), KEY), "the query of 'tired' is zero"),
    "adjective asks": (lambda: (_rows(adjective=8.0), KEY), "both endings find the cat"),
    "sign": (lambda: (_rows(state=-8.0), KEY), "a sign is the wrong way round"),
    "short query": (lambda: (_rows(state=3.0), KEY), "longer queries decide"),
    "key only alive": (lambda: (_rows(state=8.0), _rows(alive=1.0)), "'warm' gives mat"),
    "itself": (lambda: (_rows(state=8.0), _rows(state=8.0)), "looks mostly at 'tired'"),
    "forgotten root": (
        lambda: (_rows(16, state=6.0), _rows(16, alive=1.0, place=-1.0)),
        "below 0.9",
    ),
    "one matrix": (lambda: KEY, "return two matrices"),
    "two widths": (lambda: (_rows(2, state=8.0), KEY), "must share their width"),
    "transposed": (lambda: (_rows(state=8.0).T, KEY.T), "w_q must be a matrix of shape (6, d_k)"),
    "infinite": (lambda: (_rows(state=float("inf")), KEY), "finite"),
    "three": (lambda: (_rows(state=8.0), KEY, KEY), "return two matrices"),
}


@pytest.mark.parametrize("answer, phrase", ENDING.values(), ids=ENDING)
def test_ending_rejects(answer, phrase):
    rejected("ending", answer, phrase)


# ---- three bugs


def _layer(turned="qkv", dim=-1, size=lambda x: x.shape[1] ** 0.5, take="v"):
    def answer(x, *matrices):
        made = {c: x @ (w.T if c in turned else w) for c, w in zip("qkv", matrices, strict=True)}
        return torch.softmax(made["q"] @ made["k"].T / size(x), dim) @ made[take]

    return answer


def test_bugs_accept_another_way(capsys):
    def by_linear(x, *matrices):
        return attention(*(torch.nn.functional.linear(x, w) for w in matrices))[0]

    accepted("repaired_layer", by_linear, capsys)


def _tokens(x):
    return len(x) ** 0.5


BUGS = {
    "as printed": (_layer("qk", 0, _tokens), "nothing is repaired yet"),
    "softmax repaired": (_layer("qk", -1, _tokens), "two bugs are left: a matrix"),
    "scale repaired": (_layer("qk", 0), "and the softmax runs down"),
    "transpose repaired": (_layer("qkv", 0, _tokens), "two bugs are left: the scores"),
    "transpose left": (_layer("qk"), "one bug is left: a matrix is used"),
    "scale left": (_layer(size=_tokens), "one bug is left: the scores"),
    "softmax left": (_layer(dim=0), "one bug is left: the softmax"),
    "never transposed": (_layer(""), "now no matrix is transposed"),
    "by the width": (_layer(size=lambda x: x.shape[1]), "take its root"),
    "not scaled": (_layer(size=lambda x: 1.0), "not scaled"),
    "keys averaged": (_layer(take="k"), "the keys are averaged"),
    "queries averaged": (_layer(take="q"), "wrong output"),
    "values": (lambda x, q, k, v: x @ v.T, "the values themselves"),
    "with weights": (lambda x, *w: attention(*(x @ m.T for m in w)), "must be a tensor"),
}


@pytest.mark.parametrize("answer, phrase", BUGS.values(), ids=BUGS)
def test_bugs_reject(answer, phrase):
    rejected("repaired_layer", answer, phrase)


# ---- the share of the second key


def test_share_accepts_another_way(capsys):
    def by_softmax(q, k_1, k_2):
        k = torch.stack([k_1, k_2])
        return attention(q if q.ndim > 1 else q[None], k, k)[1][..., 1].reshape(q.shape[:-1])

    accepted("share_of_the_second_key", by_softmax, capsys)


def _gap(q, k_1, k_2):
    return q @ (k_2 - k_1)


def _root(q):
    return math.sqrt(q.shape[-1])


SHARE = {
    "the first": (lambda q, a, b: torch.sigmoid(-_gap(q, a, b) / _root(q)), "of the first key"),
    "no scaling": (lambda q, a, b: torch.sigmoid(_gap(q, a, b)), "not scaled"),
    "by d_k": (lambda q, a, b: torch.sigmoid(_gap(q, a, b) / q.shape[-1]), "divide by its root"),
    "multiplied": (lambda q, a, b: torch.sigmoid(_gap(q, a, b) * _root(q)), "you multiplied"),
    "no difference": (lambda q, a, b: torch.sigmoid(q @ b / _root(q)), "second score alone"),
    "hard": (lambda q, a, b: (_gap(q, a, b) > 0).float(), "which key wins"),
    "no sigmoid": (lambda q, a, b: _gap(q, a, b) / _root(q), "put it through a sigmoid"),
    "linear": (lambda q, a, b: q @ b / (q @ a + q @ b), "take exp first"),
    "half": (lambda q, a, b: torch.full(q.shape[:-1], 0.5), "one half for every query"),
    "root of 2": (
        lambda q, a, b: torch.sigmoid(_gap(q, a, b) / math.sqrt(2)),
        "wrong share for q of shape",
    ),
    "both": (
        lambda q, a, b: torch.stack([_gap(q, b, a), _gap(q, a, b)], -1).softmax(-1),
        "must have shape",
    ),
    "words at the edge": (
        lambda q, a, b: (
            "a tie" if q.shape == (2,) and q[0] == 7 else torch.sigmoid(_gap(q, a, b) / _root(q))
        ),
        "the share must be a tensor; got str",
    ),
    "overflow": (
        lambda q, a, b: (
            (q @ b / _root(q)).exp() / ((q @ a / _root(q)).exp() + (q @ b / _root(q)).exp())
        ),
        "NaN",
    ),
}


@pytest.mark.parametrize("answer, phrase", SHARE.values(), ids=SHARE)
def test_share_rejects(answer, phrase):
    rejected("share_of_the_second_key", answer, phrase)


# ---- merging


def test_merge_accepts_another_way(capsys):
    def by_stack(pieces, pair):
        out, fresh = [], False
        for piece in pieces:
            if out and fresh and (out[-1], piece) == tuple(pair):
                out[-1], fresh = out[-1] + piece, False
            else:
                out.append(piece)
                fresh = True
        return out

    accepted("merge", by_stack, capsys)


def _merge(pieces, pair, step=2, join=lambda a, b: a + b, times=10**6, stop=0):
    out, i = [], 0
    while i < len(pieces) - stop:
        if tuple(pieces[i : i + 2]) == tuple(pair) and times > 0:
            out.append(join(*pieces[i : i + 2]))
            i += step
            times -= 1
        else:
            out.append(pieces[i])
            i += 1
    return out


def _merge_in_place(pieces, pair):
    pieces[:] = _merge(pieces, pair)
    return pieces


def _by_text(pieces, pair):
    """Merge wherever the letters occur, whatever the pieces."""
    a, b = pair
    return [p for p in "|".join(pieces).replace(f"{a}|{b}", a + b).split("|") if p]


def _again(pieces, pair):
    """Merge with what has just been merged."""
    out = []
    for piece in pieces:
        if out and out[-1].endswith(pair[0]) and piece == pair[1]:
            out[-1] += piece
        else:
            out.append(piece)
    return out


MERGE = {
    "overlapping": (lambda p, pair: _merge(p, pair, step=1), "used twice"),
    "skips one": (lambda p, pair: _merge(p, pair, step=3), "pieces are lost"),
    "first only": (lambda p, pair: _merge(p, pair, times=1), "an occurrence is left over"),
    "reversed": (lambda p, pair: _merge(p, pair, join=lambda a, b: b + a), "order has changed"),
    "either order": (lambda p, pair: _merge(_merge(p, pair), pair[::-1]), "too much is merged"),
    "as a tuple": (lambda p, pair: _merge(p, pair, join=lambda a, b: (a, b)), "join the two"),
    "in place": (_merge_in_place, "changed the list"),
    "last lost": (lambda p, pair: _merge(p, pair, stop=1), "last piece is lost"),
    "nothing": (lambda p, pair: list(p), "nothing is merged"),
    "a string": (lambda p, pair: "".join(_merge(p, pair)), "got the string"),
    "by text": (_by_text, "too much is merged"),
    "again": (_again, "too much is merged"),
    "dropped": (lambda p, pair: [x for x in p if x not in pair], "pieces are lost"),
}


@pytest.mark.parametrize("answer, phrase", MERGE.values(), ids=MERGE)
def test_merge_rejects(answer, phrase):
    rejected("merge", answer, phrase)


# ---- attention in columns


def test_columns_accept_rows_transposed(capsys):
    def by_rows(x, q, k, v):
        return attention(x.T @ q.T, x.T @ k.T, x.T @ v.T)[0].T

    accepted("column_attention", by_rows, capsys)


def _columns(weigh, take=lambda q, k, v, a: v @ a):
    def answer(x, o_q, o_k, o_v):
        q, k, v = o_q @ x, o_k @ x, o_v @ x
        return take(q, k, v, weigh(q, k, x))

    return answer


def _soft(scores, dim=0):
    return torch.softmax(scores, dim)


def _right(q, k, x):
    return _soft(k.T @ q / math.sqrt(len(q)))


COLUMNS = {
    "rows normalised": (
        _columns(lambda q, k, x: _soft(k.T @ q / math.sqrt(len(q)), -1)),
        "down each column",
    ),
    "Q^T K": (_columns(lambda q, k, x: _soft(q.T @ k / math.sqrt(len(q)))), "this is Q^T K"),
    "weights transposed": (_columns(lambda q, k, x: _right(q, k, x).T), "weights are transposed"),
    "no scaling": (_columns(lambda q, k, x: _soft(k.T @ q)), "not scaled"),
    "by D_q": (_columns(lambda q, k, x: _soft(k.T @ q / len(q))), "divide by its root"),
    "root of N": (
        _columns(lambda q, k, x: _soft(k.T @ q / math.sqrt(x.shape[1]))),
        "the root of N",
    ),
    "root of D": (_columns(lambda q, k, x: _soft(k.T @ q / math.sqrt(len(x)))), "the root of D;"),
    "transposed": (_columns(_right, lambda q, k, v, a: (v @ a).T), "the result is transposed"),
    "keys": (_columns(_right, lambda q, k, v, a: k @ a), "must have shape"),
    "mean": (
        _columns(_right, lambda q, k, v, a: v.mean(1, keepdim=True).expand_as(v)),
        "plain mean",
    ),
    "values": (_columns(_right, lambda q, k, v, a: v), "the values themselves"),
    "with weights": (_columns(_right, lambda q, k, v, a: (v @ a, a)), "the output alone"),
    "in rows": (lambda x, q, k, v: attention(x @ q, x @ k, x @ v)[0], "raised RuntimeError"),
}


@pytest.mark.parametrize("answer, phrase", COLUMNS.values(), ids=COLUMNS)
def test_columns_reject(answer, phrase):
    rejected("column_attention", answer, phrase)


# ---- weights from an output


def _weights(out, values):
    edges = (values[:2] - values[2]).T
    two = torch.linalg.solve(edges, out - values[2])
    return torch.cat([two, 1 - two.sum()[None]])


def test_weights_accept_another_way(capsys):
    accepted("weights_from_output", _weights, capsys)


def _distances(out, values):
    d = (values - out).norm(dim=-1)
    return d / d.sum()


def _least(out, values):
    """The shortest of all combinations, which need not sum to 1."""
    return torch.linalg.pinv(values.T) @ out


WEIGHTS = {
    "no third equation": (_least, "do not sum to 1"),
    "cut": (lambda o, v: _weights(o, v).clamp(min=0), "negative numbers are cut off;"),
    "cut and rescaled": (
        lambda o, v: _weights(o, v).clamp(min=0) / _weights(o, v).clamp(min=0).sum(),
        "cut off and the rest rescaled",
    ),
    "distances": (_distances, "shares of the distances"),
    "softmax": (lambda o, v: torch.softmax(v @ o, -1), "a softmax of dot products"),
    "attention": (
        lambda o, v: torch.softmax(v @ o / math.sqrt(2), -1),
        "a scaled softmax of dot products",
    ),
    "thirds": (lambda o, v: torch.full((3,), 1 / 3), "one third each"),
    "reversed": (lambda o, v: _weights(o, v).flip(0), "in reverse order"),
    "a constant": (lambda o, v: torch.tensor([0.3, 0.4, 0.3]), "not the weights of"),
    "one corner": (lambda o, v: torch.tensor([1 - o[1], 1 - o[0], o.sum() - 1]), "sum"),
    "two numbers": (lambda o, v: _weights(o, v)[:2], "must have shape"),
}


@pytest.mark.parametrize("answer, phrase", WEIGHTS.values(), ids=WEIGHTS)
def test_weights_reject(answer, phrase):
    rejected("weights_from_output", answer, phrase)


# ---- the query aimed


def _aim(keys, weights, scale=2.0):
    logs = weights.log()
    return torch.linalg.solve(keys[:2] - keys[2], scale**0.5 * (logs[:2] - logs[2]))


def test_aim_accepts_another_way(capsys):
    def by_least_squares(keys, weights):
        centred = keys - keys.mean(0)
        logs = weights.log() - weights.log().mean()
        return torch.linalg.lstsq(centred, math.sqrt(2) * logs[:, None]).solution[:, 0]

    accepted("aimed_query", by_least_squares, capsys)


def _solve(a, b):
    return torch.linalg.solve(a, math.sqrt(2) * b)


AIM = {
    "no scale": (lambda k, w: _aim(k, w, 1.0), "the scale is missing"),
    "scale twice": (lambda k, w: _aim(k, w, 4.0), "used twice"),
    "wrong way": (lambda k, w: -_aim(k, w), "points the wrong way"),
    "no logarithm": (lambda k, w: _solve(k[:2] - k[2], w[:2] - w[2]), "logarithm is missing"),
    "keys themselves": (lambda k, w: _solve(k[:2], w.log()[:2]), "differences of keys"),
    "differences on one side": (
        lambda k, w: _solve(k[:2], w.log()[:2] - w.log()[2]),
        "take the third key away on both",
    ),
    "blend": (lambda k, w: w @ k, "the blend of the keys"),
    "zero": (lambda k, w: torch.zeros(2), "this query gives the weights 0.333"),
    "best key": (lambda k, w: k[w.argmax()], "this query gives the weights"),
    "a matrix": (lambda k, w: _aim(k, w)[None], "must have shape"),
    "constant offset": (lambda k, w: _aim(k, w) + 1.0, "this query gives the weights"),
}


@pytest.mark.parametrize("answer, phrase", AIM.values(), ids=AIM)
def test_aim_rejects(answer, phrase):
    rejected("aimed_query", answer, phrase)
