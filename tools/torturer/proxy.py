"""A proxy between a node and the engine of its journal, which loses what it is told to lose."""
import socket
import threading

from .server import free_port


class Proxy:
    """Forwards connections to `target` (host, port). All methods may be called from any thread."""

    def __init__(self, target):
        self.target, self.lock, self.links, self.losing, self.is_closed = target, threading.Lock(), set(), None, False
        self.is_flowing = threading.Event()
        self.is_flowing.set()
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, what):
        """The next "question" to the engine, or the next "answer" of it, is dropped, and its connection ends."""
        self.losing = what

    def cut(self):
        """Ends every connection there is."""
        with self.lock:
            links, self.links = self.links, set()
        for link in links:
            link.end()

    def freeze(self):
        """Nothing passes any more, and nothing ends, until `heal`."""
        self.is_flowing.clear()

    def heal(self):
        self.losing = None
        self.is_flowing.set()

    def close(self):
        self.is_closed = True
        self.heal()
        self.listener.close()
        self.cut()

    def _accept(self):
        while not self.is_closed:
            try:
                node, _ = self.listener.accept()
                engine = socket.create_connection(self.target, 5)
            except OSError:
                if self.is_closed:
                    return
                node.close()  # the engine is away
                continue
            link = Link(self, node, engine)
            with self.lock:
                self.links.add(link)
            for pump in ((node, engine, "question"), (engine, node, "answer")):
                threading.Thread(target=link.pump, args=pump, daemon=True).start()


class Link:
    def __init__(self, proxy, *sockets):
        self.proxy, self.sockets = proxy, sockets
        for each in sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def pump(self, source, target, what):
        try:
            while chunk := source.recv(1 << 16):
                self.proxy.is_flowing.wait()
                if self.proxy.losing == what:
                    self.proxy.losing = None
                    break
                target.sendall(chunk)
        except OSError:
            pass
        self.end()

    def end(self):
        for each in self.sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()
