import Base
import Glibc
import Messages
import TLS
import TestSupport
import Testing
import Wire

@testable import Transport

/// Calls over TLS go as over a plain connection; a connection that is not TLS, or only half of it, ends.
@Suite struct TLSConnectionTests {
    /// Twenty calls of growing size, as the native protocol sends them.
    private static func requests() throws -> (bytes: [UInt8], texts: [Text]) {
        let raw = RawClient.unconnected()
        let texts = (0..<20).map { Text(String(repeating: "\($0) ", count: 1 + 600 * $0)) }
        let bytes = texts.flatMap { raw.request(Echo.echo, WireKeyValue(key: $0), stream: raw.nextStream()) }
        return (bytes, texts)
    }

    /// The texts of these answers.
    private static func texts(_ bytes: [UInt8]) throws -> [Text] {
        var (rest, texts) = (bytes[...], [Text]())
        while let header = rest.withUnsafeBytes({ FrameHeader.read($0) }) {
            let end = FrameHeader.byteCount + Int(header.payloadByteCount)
            guard rest.count >= end else { break }
            let payload = Array(rest.dropFirst(FrameHeader.byteCount).prefix(Int(header.payloadByteCount)))
            let frame = RawClient.Frame(header: header, payload: payload)
            texts.append(try RawClient.response(frame, returning: WireKeyValue.self).key)
            rest = rest.dropFirst(end)
        }
        return texts
    }

    @Test(arguments: [1, 37, 1_000_000], [10, 65_536])
    func `Calls go over TLS in records of any size, read in pieces of any size`(recordByteCount: Int, room: Int)
        async throws
    {
        try await TLSServer.run { server in
            let client = try server.client()
            #expect(client.session.applicationProtocol == .native)
            let (bytes, texts) = try Self.requests()
            for start in stride(from: 0, to: bytes.count, by: recordByteCount) {
                try client.send(Array(bytes[start..<min(bytes.count, start + recordByteCount)]))
            }
            client.closeForWriting(sayingSo: true)
            #expect(try Self.texts(client.receiveAll(room: room)) == texts)
        }
    }

    @Test func `A handshake that comes byte by byte succeeds`() async throws {
        try await TLSServer.run { server in
            let client = try TLSClient(
                port: server.port, server.certificates.clientConfiguration(), isBytewise: true)
            let (bytes, texts) = try Self.requests()
            try client.send(bytes)
            var answers: [UInt8] = []
            while try Self.texts(answers).count < texts.count { answers += try client.receiveSome() }
            #expect(try Self.texts(answers) == texts)
        }
    }

    @Test func `The end of a stream is an end only when the client has said so`() async throws {
        try await TLSServer.run { server in
            var open: [TLSClient] = []
            for saysSo in [true, false] {
                let client = try server.client()
                let raw = RawClient.unconnected()
                let request = raw.request(Echo.hold, WireKeyValue(key: "a"), stream: 1)
                let echoed = raw.request(Echo.echo, WireKeyValue(key: "b"), stream: 3)
                try client.send(request + echoed)
                // This is the second call's answer: the first call is still being worked on.
                _ = try client.receive(FrameHeader.byteCount)
                client.closeForWriting(sayingSo: saysSo)
                open.append(client)
            }
            // Only the connection whose client had said so stays open: its call goes on.
            try await until { server.server.metrics.connectionsOpen.value == 1 }
            for client in open { client.close() }
        }
    }

    @Test func `Plain text from this machine is taken, unless TLS is required`() async throws {
        for isRequired in [false, true] {
            try await TLSServer.run(configure: { settings, _ in settings.isRequired = isRequired }) { server in
                let raw = try RawClient(port: server.port)
                if isRequired {
                    try raw.send(raw.request(Echo.echo, WireKeyValue(key: "a"), stream: 1))
                    #expect(try raw.readUntilClosed().isEmpty)
                    #expect(server.tls.metrics.plaintextRefused.value == 1)
                } else {
                    let answer = try raw.call(Echo.echo, WireKeyValue(key: "a"), returning: WireKeyValue.self)
                    #expect(answer.key == "a")
                }
            }
        }
    }

    @Test func `A client that names a protocol must speak it`() async throws {
        try await TLSServer.run { server in
            let client = try server.client()
            try client.send([UInt8]("PRI * HTTP/2.0".utf8))
            #expect(throws: TLSClient.Outcome.ended(inGoodOrder: true)) { try client.receiveSome() }
        }
    }

    // MARK: Handshakes

    private static let beginning: [UInt8] = [0x16, 0x03, 0x01, 0x01, 0x00, 0x01]

    @Test func `A handshake that does not go on is ended`() async throws {
        var limits = Limits()
        limits.tlsHandshakeTimeout = .milliseconds(500)
        try await TLSServer.run(limits: limits) { server in
            let raw = try RawClient(port: server.port)
            try raw.send(Self.beginning)
            #expect(try raw.readUntilClosed().isEmpty)
            #expect(server.server.metrics.handshakesTimedOut.value == 1)
            try await until("the handshake gives up its place") { server.server.handshakeCount == 0 }
        }
    }

    @Test func `Handshakes in flight are bounded, and neither old nor new connections suffer from it`() async throws {
        var limits = Limits()
        limits.tlsHandshakesMax = 8
        limits.tlsHandshakesPerAddressMax = 4
        limits.tlsHandshakeTimePerTurnMax = .zero
        limits.tlsHandshakeTimeout = .seconds(60)
        limits.firstRequestTimeout = .seconds(60)
        try await TLSServer.run(limits: limits) { server in
            let old = try server.client()
            let flood = try (0..<40).map { _ in
                let raw = try RawClient(port: server.port)
                try raw.send(Self.beginning)
                return raw
            }
            // As many handshakes as there are places are left; the others have lost their place.
            try await until { server.server.metrics.handshakesDisplaced.value == 36 }
            #expect(server.server.handshakeCount == 4)
            for client in [old, try server.client()] {
                let (bytes, texts) = try Self.requests()
                try client.send(bytes)
                client.closeForWriting(sayingSo: true)
                #expect(try Self.texts(client.receiveAll()) == texts)
            }
            withExtendedLifetime(flood) {}
        }
    }

    // MARK: Other certificates

    @Test func `A certificate is replaced while calls go on, and a bad one is not taken`() async throws {
        var limits = Limits()
        limits.firstRequestTimeout = .seconds(60)
        try await TLSServer.run(limits: limits) { server in
            let old = try server.client()
            let before = server.tls.metrics.certificateExpiry.value
            for days in [60, 90] {
                try server.certificates.replaceServer(days: days)
                await server.reload()
                let (bytes, texts) = try Self.requests()
                let new = try server.client()
                try new.send(bytes)
                new.closeForWriting(sayingSo: true)
                #expect(try Self.texts(new.receiveAll()) == texts)
            }
            #expect(server.tls.metrics.certificateExpiry.value >= before + 59 * 86_400)
            #expect(server.tls.metrics.reloads.value == 2)
            let good = server.tls.metrics.certificateExpiry.value
            for bad in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
                writeFile(server.certificates.certificateFile, [UInt8](bad.utf8))
                await server.reload()
                _ = try server.client()
            }
            try server.certificates.replaceServer(days: -1)
            await server.reload()
            _ = try server.client()
            #expect(server.tls.metrics.reloadFailures.value == 4)
            #expect(server.tls.metrics.certificateExpiry.value == good)
            // The connection that was there first still goes on.
            let (bytes, texts) = try Self.requests()
            try old.send(bytes)
            old.closeForWriting(sayingSo: true)
            #expect(try Self.texts(old.receiveAll()) == texts)
        }
    }

    /// What kept a file from being read may pass without a trace in the file: a lack of descriptors, for example.
    @Test func `Faulty files are read again, changed or not, and the same fault is logged once`() async throws {
        let lines = Counter()
        try await TLSServer.run(log: Log(level: .error, sink: { _ in lines.add() })) { server in
            let failures = server.tls.metrics.reloadFailures
            writeFile(server.certificates.certificateFile, [UInt8]("nonsense".utf8))
            let start = Instant.now
            for (seconds, count) in [(0, 1), (29, 1), (31, 2), (40, 2), (62, 3)] as [(Int64, UInt64)] {
                await server.reload(now: start.advanced(by: .seconds(seconds)))
                #expect(failures.value == count && lines.value == 1, "after \(seconds) s")
            }
            // The log answers an operator who asks.
            await server.reload(onlyIfChanged: false, now: start.advanced(by: .seconds(63)))
            #expect(failures.value == 4 && lines.value == 2)
            try server.certificates.replaceServer(days: 60)
            for seconds in [64, 128] as [Int64] { await server.reload(now: start.advanced(by: .seconds(seconds))) }
            #expect(failures.value == 4 && lines.value == 2 && server.tls.metrics.reloads.value == 1)
            _ = try server.client()
        }
    }

    @Test func `What is wrong with the files is said at the start`() throws {
        try withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            func complaint(_ certificate: String, _ key: String) -> String {
                do throws(TLSError) {
                    _ = try ServerTLS(
                        ServerTLS.Settings(certificateFile: certificate, keyFile: key), limits: Limits(), log: .silent)
                    return ""
                } catch { return "\(error)" }
            }
            #expect(complaint(certificates.certificateFile, certificates.keyFile).isEmpty)
            #expect(complaint("\(directory)/none", certificates.keyFile).contains("No such file"))
            #expect(complaint(certificates.keyFile, certificates.keyFile).contains("no certificate"))
            #expect(complaint(certificates.certificateFile, certificates.certificateFile).contains("no private key"))
            #expect(complaint(certificates.authorityFile, certificates.keyFile).contains("does not belong"))
            chmod(certificates.keyFile, 0o644)
            #expect(complaint(certificates.certificateFile, certificates.keyFile).contains("chmod 600"))
            try certificates.replaceServer(days: -1)
            #expect(complaint(certificates.certificateFile, certificates.keyFile).contains("expired"))
        }
    }

    @Test(arguments: [(3_072, 0), (4_096, 1)] as [(Int, UInt64)])
    func `A key that makes handshakes slow is warned of`(_ bitCount: Int, _ warningCount: UInt64) throws {
        try withTemporaryDirectory { directory in
            let (certificate, key) = ("\(directory)/rsa.pem", "\(directory)/rsa-key.pem")
            let made = try ChildProcess(
                "openssl",
                [
                    "req", "-x509", "-newkey", "rsa:\(bitCount)", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "30", "-subj", "/CN=localhost",
                ])
            #expect(made.wait() == 0)
            chmod(key, 0o600)
            let lines = Counter()
            _ = try ServerTLS(
                ServerTLS.Settings(certificateFile: certificate, keyFile: key), limits: Limits(),
                log: Log(level: .warning, sink: { _ in lines.add() }))
            #expect(lines.value == warningCount)
        }
    }

    @Test func `A fault in the files for client certificates names the file`() throws {
        try withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            let odd = "\(directory)/odd.pem"
            func complaint(authorities: String, revocations: String) -> String {
                var settings = ServerTLS.Settings(
                    certificateFile: certificates.certificateFile, keyFile: certificates.keyFile)
                settings.clientCAFile = authorities
                settings.clientCRLFile = revocations
                do throws(TLSError) {
                    _ = try ServerTLS(settings, limits: Limits(), log: .silent)
                    return ""
                } catch { return "\(error)" }
            }
            #expect(complaint(authorities: certificates.authorityFile, revocations: "").isEmpty)
            let texts = [
                "", "nonsense", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            ]
            for text in texts {
                writeFile(odd, [UInt8](text.utf8))
                #expect(complaint(authorities: certificates.authorityFile, revocations: odd).contains(odd), "\(text)")
                #expect(complaint(authorities: odd, revocations: "").contains(odd), "\(text)")
            }
            let other = certificates.certificateFile
            #expect(complaint(authorities: certificates.authorityFile, revocations: other).contains(other))
            #expect(complaint(authorities: certificates.authorityFile, revocations: "\(odd)2").contains("\(odd)2"))
        }
    }
}
