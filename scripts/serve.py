"""Serve the built book on this machine only, on port 8000 or the next free one."""

import argparse
import errno
import functools
import http.server
import signal
import sys
from pathlib import Path

SITE = Path(__file__).parents[1] / "_site"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):  # a line for every picture says nothing
        pass

    def send_error(self, code, message=None, explain=None):
        page = SITE / "404.html"
        if code != 404 or not page.exists():
            return super().send_error(code, message, explain)
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # a reader who leaves is no error
            super().handle_error(request, client_address)


def bind(port: int, tries: int = 50) -> Server:
    """A server on 127.0.0.1 at `port` or, where that is taken, at the next free port."""
    handler = functools.partial(Handler, directory=str(SITE))
    for candidate in range(port, port + tries):
        try:
            return Server(("127.0.0.1", candidate), handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise OSError(f"cannot serve on port {candidate}: {error.strerror}") from None
            print(f"Port {candidate} is in use; trying {candidate + 1}.", flush=True)
    raise OSError(
        f"ports {port} to {port + tries - 1} are all in use; name another: make PORT=9000"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    port = parser.parse_args().port
    if not 1 <= port <= 65_486:
        print(f"The port must lie between 1 and 65486; got {port}.", file=sys.stderr)
        return 1
    if not (SITE / "index.html").exists():
        print("There is no built book; run `make book` first.", file=sys.stderr)
        return 1
    for signal_number in (signal.SIGINT, signal.SIGTERM):  # also where a shell ignores Ctrl-C
        signal.signal(signal_number, signal.default_int_handler)
    try:
        with bind(port) as server:
            at = f"http://127.0.0.1:{server.server_address[1]}/"
            print(f"The book: {at} (Ctrl-C stops)", flush=True)
            server.serve_forever()
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
