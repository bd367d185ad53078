"""The client, where there is no student to ask; a real server is asked in `tracking/test_serving.py`."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from fcer.deploy.client import ask
from fcer.errors import FcerError, InputError

DAYS = np.zeros((1, 5, 2, 4, 4))


class Handler(BaseHTTPRequestHandler):
    """Answers as its path says: /STATUS/TEXT."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        _, status, text, *_ = self.path.split("/")
        self.send_response(int(status))
        if status == "206":
            self.send_header("Content-Length", "1000")  # which it will not keep
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def other() -> Iterator[str]:
    """A server of something else."""
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "text", ["fire", "[]", "{}", '{"predictions":[1]}', '{"predictions":{"probability":"AAAA","uncertainty":"AAAA"}}']
)
def test_another_model_is_named(other: str, text: str):
    with pytest.raises(FcerError, match="the answer is not a student's maps; see which model is served there"):
        ask(f"{other}/200/{text}", DAYS)


def test_an_error_of_the_server_is_not_the_askers(other: str):
    with pytest.raises(FcerError, match="/invocations: 503: Service Unavailable") as error:
        ask(f"{other}/503/busy", DAYS)
    assert not isinstance(error.value, InputError)
    with pytest.raises(InputError, match="413: "):
        ask(f"{other}/413/fire", DAYS)


def test_nobody_there(other: str):
    with pytest.raises(FcerError, match=r"no answer \(.*Connection refused\); see that the server runs there"):
        ask("http://127.0.0.1:1", DAYS)


def test_a_server_that_breaks_off(other: str):
    with pytest.raises(FcerError, match=r"no answer \(IncompleteRead"):
        ask(f"{other}/206/fire", DAYS)
    with pytest.raises(FcerError, match=r"no answer \(URL can't contain control characters"):
        ask("http://a b/", DAYS)


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "file:///etc/hosts", ""])
def test_what_is_no_address(url: str):
    with pytest.raises(InputError, match="not the address of a server; give one such as http"):
        ask(url, DAYS)


def test_text_is_not_sent():
    with pytest.raises(InputError, match="days: numbers are needed, not <U4"):
        ask("http://127.0.0.1:1", [["fire"]])
