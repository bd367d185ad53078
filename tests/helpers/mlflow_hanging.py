"""A way to an MLflow server that is cut at will: from then on it accepts whatever comes and never answers."""

import socket
import threading


class HangingProxy:
    """Passes bytes on to a server until `hang` is called; nothing is ever answered after that."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._hangs = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.unanswered = 0
        """Connections that came after `hang`."""
        self._held: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def hang(self) -> None:
        self._hangs.set()

    def close(self) -> None:
        self._listener.close()
        for held in self._held:
            held.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._held.append(client)
            if self._hangs.is_set():
                self.unanswered += 1
                continue
            server = socket.create_connection(("127.0.0.1", self._port))
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while content := source.recv(65536):
                if self._hangs.is_set():
                    self.unanswered += 1
                    return
                target.sendall(content)
        except OSError:
            return
