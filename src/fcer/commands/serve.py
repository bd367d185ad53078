"""`fcer serve`: the champion answers over HTTP until it is stopped, and the next champion takes over by itself."""

import contextlib
import os
import socket

from fcer.config import Resolved
from fcer.errors import ConfigError, FcerError
from fcer.models.precision import check_precision
from fcer.registry.champion import Champion
from fcer.registry.find_student import CHAMPION_URI
from fcer.registry.serving import TOKEN, ServedApp

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Load, listen, answer; requests that are under way are finished when it is stopped."""
    config = resolved.config
    token = os.environ.get(TOKEN)
    if token is not None and (len(token) < 16 or not token.isascii()):
        raise ConfigError(f"{TOKEN}: a token has 16 ASCII characters at least; make one with `openssl rand -hex 16`")
    check_precision(config.precision)
    import uvicorn  # comes with mlflow

    champion = Champion(config.model or CHAMPION_URI, config.work, config.poll, config.precision)
    with _listening(config.host, config.port) as listener:
        address = f"http://{config.host}:{listener.getsockname()[1]}"
        guarded = f"requests bring the token of {TOKEN}" if token else "no token is asked for: keep it private"
        print(f"serving {champion.uri} on {address}; {guarded}", flush=True)
        champion.follow()
        settings = uvicorn.Config(ServedApp(champion, token), log_level="warning", lifespan="off", server_header=False)
        with contextlib.suppress(KeyboardInterrupt):  # being stopped is how it ends
            uvicorn.Server(settings).run(sockets=[listener])
        champion.stop()


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise FcerError(f"{host}:{port} cannot be listened on ({error.strerror}); choose another --port") from None
