import Base
import Identity
import Reactor
import Service
import Transport

/// The ports for clients: the listeners of the RPC port, and the HTTP port.
struct FrontDoor: CustomStringConvertible {
    private let listeners: [Listener]
    private let sidePort: SidePort?

    /// Binds all ports. The RPC port takes connections from `open` on.
    init(
        to instance: Instance, at addresses: Addresses, _ configuration: Configuration, tls: ServerTLS?, log: Log
    ) throws {
        var listeners: [Listener] = []
        do {
            for address in addresses.rpc {
                listeners.append(
                    try instance.server.listen(
                        address, tls: tls, mode: configuration.socketMode ?? 0o600,
                        proxies: configuration.proxies ?? []))
            }
            sidePort = try addresses.http.map {
                try SidePort(instance, $0, tls: configuration.httpTLS == "on" ? tls : nil, log: log)
            }
        } catch {
            for listener in listeners { listener.close() }
            throw error
        }
        self.listeners = listeners
    }

    /// The addresses of the RPC port.
    var description: String { listeners.map { "\($0.address)" }.joined(separator: ",") }

    var httpAddress: String { sidePort.map { "\($0.address)" } ?? "off" }

    func open() { for listener in listeners { listener.start() } }

    func closeToCalls() { for listener in listeners { listener.close() } }

    func closeToProbes() { sidePort?.close() }
}

/// The HTTP port, on a loop of its own, because a scrape must not hold up calls.
private final class SidePort {
    private let loop = EventLoop(name: "http")
    private let server: HTTPServer

    init(_ instance: Instance, _ wanted: SocketAddress, tls: ServerTLS?, log: Log) throws {
        server = try HTTPServer(
            on: loop, at: wanted, routes: instance.sidePortRoutes, limits: instance.project.limits,
            metrics: instance.httpMetrics, tls: tls, log: log)
        loop.start()
    }

    var address: SocketAddress { server.address }

    func close() {
        loop.stop()
        loop.join()
        server.close()
    }
}
