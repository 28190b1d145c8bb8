import Base
import TLS
import TestSupport

@testable import Transport

/// A server with TLS whose calls are echoed, and the files of its certificates.
struct TLSServer {
    let server: Server
    let tls: ServerTLS
    let echo: Echo
    let certificates: TestCertificates
    let port: UInt16

    static func run(
        limits: Limits = Limits(), configure: (inout ServerTLS.Settings, String) -> Void = { _, _ in },
        proxies: [IPNetwork] = [], log: Log = .silent, _ body: (TLSServer) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            var settings = ServerTLS.Settings(
                certificateFile: certificates.certificateFile, keyFile: certificates.keyFile)
            configure(&settings, directory)
            let tls = try ServerTLS(settings, limits: limits, log: log)
            let echo = Echo()
            try await LoopServer.run(echo, limits: limits, log: log) { adopting in
                let server = adopting.server
                guard let wanted = SocketAddress(host: "127.0.0.1", port: 0) else { preconditionFailure("no loopback") }
                let listener = try server.listen(wanted, tls: tls, proxies: proxies)
                listener.start()
                defer { listener.close() }
                try await body(
                    TLSServer(
                        server: server, tls: tls, echo: echo, certificates: certificates, port: listener.address.port))
            }
        }
    }

    func client(_ credential: TLSCredential? = nil) throws -> TLSClient {
        try TLSClient(port: port, certificates.clientConfiguration(credential))
    }

    /// Reads the files again, on a thread that may block.
    func reload(onlyIfChanged: Bool = true, now: Instant = .now) async {
        let done = Promise<Void>()
        let thread = OSThread(name: "reload") {
            tls.reload(onlyIfChanged: onlyIfChanged, now: now)
            done.succeed(())
        }
        try? await done.value()
        thread.join()
    }
}
