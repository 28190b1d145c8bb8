import Base
import Messages
import Rules
import Service
import TLS
import TestSupport
import Testing
import Transport
import Wire

/// What a client may do by its certificate: alone, and together with an API key.
@Suite struct CertificateMappingTests {
    static let mailer = "spiffe://example.org/mailer"
    private static let stats = "postern.v1.Project/Stats"

    /// A server with TLS and its certificates. Their authority signs those of its clients too.
    static func withTLS(
        _ body: (TestServer, UInt16, TestCertificates) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            var settings = ServerTLS.Settings(
                certificateFile: certificates.certificateFile, keyFile: certificates.keyFile)
            settings.clientCAFile = certificates.authorityFile
            let tls = try ServerTLS(settings, limits: Limits(), log: .silent)
            try await withServer { server in
                guard let wanted = SocketAddress(host: "127.0.0.1", port: 0) else { preconditionFailure("no loopback") }
                let listener = try server.instance.server.listen(wanted, tls: tls)
                listener.start()
                let outcome: Result<Void, any Error>
                do {
                    outcome = .success(try await body(server, listener.address.port, certificates))
                } catch { outcome = .failure(error) }
                listener.close()
                try outcome.get()
            }
        }
    }

    static func mapping(
        _ certificates: TestCertificates, _ role: Role, name: CertificateMapping.Name = .uri(Text(mailer)),
        tenants: Scope.Tenants = .all(true)
    ) throws -> CertificateMapping {
        let authority = try Certificate.all(pem: certificates.authority.certificatePEM, countMax: 1)[0]
        return CertificateMapping(
            name: name, issuerKeySha256: Hex.encode(authority.keyHash), role: role, scope: Scope(tenants: tenants))
    }

    @discardableResult
    static func create(_ server: TestServer, _ mapping: CertificateMapping) throws -> CertificateMapping {
        let made: ProjectCreateCertificateMappingResponse = try server.connect().call(
            "postern.v1.Project/CreateCertificateMapping",
            ProjectCreateCertificateMappingRequest(certificateMapping: mapping))
        return made.certificateMapping ?? CertificateMapping()
    }

    /// The refusal's reason; "" for an answer.
    private static func ask(
        _ client: TLSClient, _ method: String = CertificateMappingTests.stats,
        _ message: some Message = ProjectStatsRequest(),
        stream: UInt32 = 1, key: Secret? = nil
    ) throws -> String {
        let raw = RawClient.unconnected()
        raw.apiKey = key
        try client.send(raw.request(method, message, stream: stream))
        let head = try client.receive(FrameHeader.byteCount)
        guard let header = head.withUnsafeBytes({ FrameHeader.read($0) }) else { return "no frame" }
        let payload = try client.receive(Int(header.payloadByteCount))
        let status = try WireResponse(decoding: payload).status
        return status.map { RawClient.failure($0).reason } ?? ""
    }

    private static func client(
        _ certificates: TestCertificates, _ port: UInt16, _ names: [CertificateMaker.Name]?
    ) throws -> TLSClient {
        let credential = try names.map { try certificates.makeClient("client", names: $0) }
        return try TLSClient(port: port, certificates.clientConfiguration(credential))
    }

    @Test func `A mapped certificate alone gives its role, and loses it with the mapping`() async throws {
        try await Self.withTLS { server, port, certificates in
            let client = try Self.client(certificates, port, [.uri(Self.mailer)])
            #expect(try Self.ask(client, stream: 1) == "CALLER_UNAUTHENTICATED")
            let made = try Self.create(server, Self.mapping(certificates, .projectAdmin))
            #expect(try Self.ask(client, stream: 3) == "")
            let deleted: ProjectDeleteCertificateMappingResponse = try server.connect().call(
                "postern.v1.Project/DeleteCertificateMapping",
                ProjectDeleteCertificateMappingRequest(certificateMappingID: made.certificateMappingID))
            #expect(deleted.certificateMapping == made)
            #expect(try Self.ask(client, stream: 5) == "CALLER_UNAUTHENTICATED")
        }
    }

    @Test func `No certificate, and a certificate without a mapping, say nothing`() async throws {
        try await Self.withTLS { server, port, certificates in
            try Self.create(server, Self.mapping(certificates, .projectAdmin))
            for names in [nil, [CertificateMaker.Name.uri("spiffe://example.org/other")], [.dns("mailer")]] {
                let client = try Self.client(certificates, port, names)
                #expect(try Self.ask(client, stream: 1) == "CALLER_UNAUTHENTICATED")
                #expect(try Self.ask(client, stream: 3, key: server.adminKey) == "")
                #expect(try Self.ask(client, stream: 5) == "CALLER_UNAUTHENTICATED")
            }
        }
    }

    @Test func `A key and a mapped certificate must both allow a call`() async throws {
        try await Self.withTLS { server, port, certificates in
            try Self.create(server, Self.mapping(certificates, .app, tenants: .tenantID("")))
            let client = try Self.client(certificates, port, [.uri(Self.mailer)])
            // The key alone may call; with the certificate the call has the lower role, and the certificate's tenant.
            #expect(try Self.ask(client, stream: 1, key: server.adminKey) == "INSUFFICIENT_PERMISSION")
            #expect(try Self.ask(client, stream: 3, key: Secret("pk_nobody")) == "CALLER_UNAUTHENTICATED")
            let made: ProjectCreateApiKeyResponse = try server.connect().call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .verifier, scope: Scope(tenants: .all(true))))
            #expect(try Self.ask(client, stream: 5, key: made.secretKey) == "INSUFFICIENT_PERMISSION")
        }
    }

    @Test func `A key that comes with another tenant's certificate is an event of the key's tenant`() async throws {
        try await Self.withTLS { server, port, certificates in
            for tenantID in ["acme", "beta"] as [Text] { try server.makeTenant(tenantID) }
            try Self.create(server, Self.mapping(certificates, .tenantAdmin, tenants: .tenantID("beta")))
            let admin = try server.connect()
            let made: ProjectCreateApiKeyResponse = try admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .tenantID("acme"))))
            let client = try Self.client(certificates, port, [.uri(Self.mailer)])
            let answer = try Self.ask(
                client, "postern.v1.Users/Get", UsersGetRequest(uid: "u0"), key: made.secretKey)
            #expect(answer == "INSUFFICIENT_PERMISSION")
            let denied = EventFilter(kinds: [.callDenied])
            let log = try RawStream<AuditWatchEventsResponse>(
                server, "postern.v1.Audit/WatchEvents",
                AuditWatchEventsRequest(tenantID: "acme", afterSequence: -1, filter: denied))
            let event = try #require(try log.next()?.event)
            #expect(event.caller == made.apiKey?.apiKeyID)
            #expect(event.detail == "postern.v1.Users/Get INSUFFICIENT_PERMISSION")
            for tenantID in ["", "beta"] as [Text] {
                let others: AuditListEventsResponse = try admin.call(
                    "postern.v1.Audit/ListEvents", AuditListEventsRequest(tenantID: tenantID, filter: denied))
                #expect(others.events.isEmpty, "\(tenantID)")
            }
        }
    }

    @Test func `The same name of another authority is nobody`() async throws {
        try await Self.withTLS { server, port, certificates in
            var wrong = try Self.mapping(certificates, .projectAdmin)
            wrong.issuerKeySha256 = Hex.encode([UInt8](repeating: 7, count: 32))
            try Self.create(server, wrong)
            let client = try Self.client(certificates, port, [.uri(Self.mailer)])
            #expect(try Self.ask(client) == "CALLER_UNAUTHENTICATED")
        }
    }

    @Test func `What a stream was begun with ends it`() async throws {
        try await Self.withTLS { server, port, certificates in
            let made = try Self.create(server, Self.mapping(certificates, .verifier))
            let client = try Self.client(certificates, port, [.uri(Self.mailer)])
            let raw = RawClient.unconnected()
            try client.send(
                raw.request(
                    "postern.v1.Tokens/WatchRevocations", TokensWatchRevocationsRequest(), stream: 1,
                    kind: .remoteClosed))
            _ = try client.receive(FrameHeader.byteCount)
            let _: ProjectDeleteCertificateMappingResponse = try server.connect().call(
                "postern.v1.Project/DeleteCertificateMapping",
                ProjectDeleteCertificateMappingRequest(certificateMappingID: made.certificateMappingID))
            var received: [UInt8] = []
            let reason = [UInt8]("CALLER_UNAUTHENTICATED".utf8)
            while received.firstRange(of: reason) == nil { received += try client.receiveSome() }
        }
    }

    @Test func `Mappings are checked, listed, and made once`() async throws {
        try await Self.withTLS { server, _, certificates in
            let admin = try server.connect()
            func refusal(_ change: (inout CertificateMapping) -> Void) throws -> String {
                var mapping = try Self.mapping(certificates, .app)
                change(&mapping)
                return failure {
                    let _: ProjectCreateCertificateMappingResponse = try admin.call(
                        "postern.v1.Project/CreateCertificateMapping",
                        ProjectCreateCertificateMappingRequest(certificateMapping: mapping))
                }.reason
            }
            #expect(try refusal { $0.role = .unspecified } == "INVALID_ROLE")
            #expect(try refusal { $0.scope = nil } == "INVALID_SCOPE")
            #expect(try refusal { $0.scope = Scope(tenants: .tenantID("none")) } == "TENANT_NOT_FOUND")
            let names: [CertificateMapping.Name?] = [
                nil, .uri(""), .uri("spiffe://example.org/*"), .uri("a b"), .uri("é"),
                .uri(Text(String(repeating: "a", count: CertificateIdentity.uriByteCountMax + 1))),
                .dnsName(Text(String(repeating: "a", count: CertificateIdentity.dnsByteCountMax + 1))),
            ]
            for name in names { #expect(try refusal { $0.name = name } == "INVALID_CERTIFICATE_MAPPING") }
            for hash in ["", "00", String(repeating: "AB", count: 32), String(repeating: "0", count: 66)] {
                #expect(try refusal { $0.issuerKeySha256 = Text(hash) } == "INVALID_CERTIFICATE_MAPPING")
            }
            let longest = Text(String(repeating: "a", count: CertificateIdentity.uriByteCountMax))
            #expect(try refusal { $0.name = .uri(longest) } == "")
            #expect(try refusal { _ in } == "")
            #expect(try refusal { _ in } == "CERTIFICATE_MAPPING_EXISTS")
            let listed: ProjectListCertificateMappingsResponse = try admin.call(
                "postern.v1.Project/ListCertificateMappings", ProjectListCertificateMappingsRequest())
            #expect(listed.certificateMappings.count == 2)
            let missing = failure {
                let _: ProjectDeleteCertificateMappingResponse = try admin.call(
                    "postern.v1.Project/DeleteCertificateMapping",
                    ProjectDeleteCertificateMappingRequest(certificateMappingID: "none"))
            }
            #expect(missing.reason == "CERTIFICATE_MAPPING_NOT_FOUND")
        }
    }
}
