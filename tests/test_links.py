"""The checker of outside links: what it collects, and what it says of each kind of answer."""

import http.server
import sys
import threading

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import links  # noqa: E402


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        code = {"/here": 200, "/gone": 404, "/private": 403, "/only-get": 200}.get(self.path, 302)
        if self.command == "HEAD" and self.path == "/only-get":
            code = 405
        self.send_response(code)
        if code == 302:
            self.send_header("Location", "/here")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def host():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


NOBODY = "http://127.0.0.1:9/x"  # the port of a service that nobody runs


@pytest.fixture
def site(tmp_path):
    def write(*found):
        (tmp_path / "book").mkdir(exist_ok=True)
        body = "".join(f'<a href="{link}">x</a>' for link in found)
        (tmp_path / "book" / "page.html").write_text(body + '<a href="other.html">in</a>')
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("path", "state"),
    [("here", links.FINE), ("moved", links.FINE), ("only-get", links.FINE), ("gone", links.GONE),
     ("private", links.UNSURE)],
)  # fmt: skip
def test_an_answer_is_judged(host, path, state):
    assert links.ask(f"{host}/{path}")[0] == state


def test_where_nobody_answers_nothing_is_judged(site, capsys):
    assert links.ask(NOBODY)[0] == links.SILENT
    assert links.main([], site(NOBODY)) == 3
    assert "is there a network? Nothing is judged" in capsys.readouterr().out


def test_a_link_that_is_gone_fails_and_is_named_with_its_page(site, host, capsys, monkeypatch):
    monkeypatch.setattr(links.time, "sleep", lambda seconds: None)
    folder = site(f"{host}/here#part", f"{host}/private", f"{host}/gone")
    assert links.main([], folder) == 1
    said = capsys.readouterr().out
    assert f"gone: {host}/gone (404 Not Found), on book/page.html" in said
    assert "1 fine, 1 gone, 0 no answer, 1 unsure" in said
    assert links.main([], site(f"{host}/here", f"{host}/private")) == 0
    assert links.main([], site(f"{host}/here", NOBODY)) == 1  # a network, but not this server


def test_links_are_collected_without_fragments_and_once(site, capsys):
    folder = site("https://a.example/x#one", "https://a.example/x#two", "mailto:a@b.example")
    assert links.outside(folder) == {"https://a.example/x": ["book/page.html"]}
    assert links.main(["--list"], folder) == 0
    assert "1 outside links" in capsys.readouterr().out
    assert links.main([], folder / "none") == 2
