"""Hostile peers: they flood, send half frames and garbage, ask for much and never read."""
import socket
import struct
import threading
import time

from .client import client
from .server import seeded

CONNECTIONS_MAX = 60


def attack(server, choices, stop):
    """Attacks until `stop`. Closes every connection at the end."""
    kind = choices.choice((flood, halves, rubbish, never_read))
    peers = []
    try:
        while not stop.is_set():
            if len(peers) >= CONNECTIONS_MAX:
                peers.pop(choices.randrange(len(peers))).close()
            try:
                peers.append(kind(server, choices))
            except (OSError, client.ClientError):
                time.sleep(0.02)
    finally:
        for peer in peers:
            peer.close()
    return kind.__name__


def connected(server):
    host, _, port = server.address.rpartition(":")
    peer = socket.create_connection((host, int(port)), 1)
    peer.settimeout(0.2)
    return peer


def flood(server, choices):
    return connected(server)


def halves(server, choices):
    """A header that promises more than ever comes."""
    peer = connected(server)
    peer.sendall(struct.pack(">IIBB", choices.choice((1, 100, 60_000, 2**24 - 1, 2**32 - 1)), 0, client.HELLO, 0)
                 + b"x" * choices.randrange(50))
    return peer


def rubbish(server, choices):
    peer = connected(server)
    peer.sendall(choices.randbytes(choices.choice((1, 9, 10, 500, 20_000))))
    return peer


def never_read(server, choices):
    """A caller with a credential that asks for pages, and has no room for them."""
    connection = client.Connection(server.address, server.key, 1.0)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(choices.randrange(1, 40)):
        method = choices.choice(("postern.v1.Users/List", "postern.v1.Tenants/List"))
        fields = {"page_size": 1000} | ({"tenant_id": "torture-0"} if "Users" in method else {})
        client.Stream(connection, client.UNARY, method, 30.0, {}, fields)
    return connection.socket


class Attackers:
    """Some attacks at once, each on a thread of its own."""

    def __init__(self, server, choices, report):
        self.stop, self.report = threading.Event(), report
        self.threads = [threading.Thread(target=self._run, args=(server, seeded(choices.random())), daemon=True)
                        for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def _run(self, server, choices):
        self.report.count("hostile: " + attack(server, choices, self.stop))

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
