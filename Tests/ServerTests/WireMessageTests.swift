import Base
import Messages
import Service
import TestSupport
import Testing
import Wire

/// Hostile and wrong messages inside well-formed frames: each is refused with its reason, and the connection stays.
@Suite struct WireMessageTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let payload: [UInt8]
        let reason: String

        var testDescription: String { name }
    }

    /// Payloads for Users.Create: tenant_id 1, uid 2, email 3, email_verified 4, password 5, display_name 6.
    static let cases: [Case] = [
        Case(name: "W19 group start", payload: [0x0B], reason: "MALFORMED_MESSAGE"),
        Case(name: "W19 group end", payload: [0x0C], reason: "MALFORMED_MESSAGE"),
        Case(name: "W19 wire type 6", payload: [0x0E], reason: "MALFORMED_MESSAGE"),
        Case(name: "W19 wire type 7", payload: [0x0F], reason: "MALFORMED_MESSAGE"),
        Case(name: "W19 field number 0", payload: [0x00, 0x00], reason: "MALFORMED_MESSAGE"),
        Case(
            name: "W19 field number above 2^29 - 1", payload: [0xF8, 0xFF, 0xFF, 0xFF, 0x7F, 0x00],
            reason: "MALFORMED_MESSAGE"),
        Case(
            name: "W19 varint of eleven bytes", payload: [0x20] + [UInt8](repeating: 0xFF, count: 10) + [0x01],
            reason: "MALFORMED_MESSAGE"),
        Case(name: "W19 varint that is not minimal", payload: [0x20, 0x81, 0x00], reason: "MALFORMED_MESSAGE"),
        Case(name: "W19 truncated field", payload: [0x12, 0x05, 0x61], reason: "MALFORMED_MESSAGE"),
        Case(
            name: "W20 33 unknown fields", payload: (0..<33).flatMap { _ in [0xF8, 0x01, 0x01] as [UInt8] },
            reason: "MESSAGE_LIMIT"),
        Case(name: "W23 uid twice", payload: [0x12, 0x01, 0x61, 0x12, 0x01, 0x62], reason: "DUPLICATE_FIELD"),
        Case(name: "W23 tenant twice", payload: [0x0A, 0x00, 0x0A, 0x00], reason: "DUPLICATE_FIELD"),
        Case(name: "W24 wrong wire type", payload: [0x10, 0x01], reason: "MALFORMED_MESSAGE"),
        Case(name: "W25 overlong UTF-8", payload: [0x12, 0x02, 0xC0, 0x80], reason: "INVALID_TEXT"),
        Case(name: "W25 surrogate", payload: [0x12, 0x03, 0xED, 0xA0, 0x80], reason: "INVALID_TEXT"),
        Case(name: "W25 lone continuation", payload: [0x12, 0x01, 0x80], reason: "INVALID_TEXT"),
        Case(name: "W26 NUL", payload: [0x12, 0x03, 0x61, 0x00, 0x62], reason: "INVALID_TEXT"),
        Case(
            name: "W26 an email cut by NUL", payload: [0x1A, 0x07] + [UInt8]("a@b.c\u{0}d".utf8),
            reason: "INVALID_TEXT"),
    ]

    @Test(arguments: cases)
    func areRefusedWithTheirReason(_ testCase: Case) async throws {
        try await withServer { server in
            let client = try server.connect()
            let failure = #expect(throws: Failure.self) {
                try client.call(
                    "postern.v1.Users/Create", RawMessage(bytes: testCase.payload), returning: UsersCreateResponse.self)
            }
            #expect(failure?.reason == testCase.reason)
            #expect(failure?.code == .invalidArgument)
            let list = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            #expect(list.users.isEmpty)
        }
    }

    // W20
    @Test func oneUnknownFieldIsIgnored() async throws {
        try await withServer { server in
            let client = try server.connect()
            let made = try client.call(
                "postern.v1.Users/Create", RawMessage(bytes: [0xF8, 0x01, 0x01, 0x12, 0x01, 0x61]),
                returning: UsersCreateResponse.self)
            #expect(made.user?.uid == "a")
        }
    }

    // W18, W21, W22
    @Test func quadraticAndAmplifyingMessagesAreRefusedAtOnce() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            let manyMasks = (0..<100_000).flatMap { _ in [0x1A, 0x00] as [UInt8] }
            let failure = #expect(throws: Failure.self) {
                try client.call(
                    "postern.v1.Accounts/Update", RawMessage(bytes: manyMasks), returning: AccountsUpdateResponse.self)
            }
            #expect(failure?.reason == "DUPLICATE_FIELD")
            let manyUsers = (0..<100_000).flatMap { _ in [0x22, 0x00] as [UInt8] }
            try client.send(
                client.request(
                    "postern.v1.Users/Import", RawMessage(bytes: manyUsers), stream: client.nextStream(),
                    kind: .remoteOpen))
            let limit = #expect(throws: Failure.self) {
                try RawClient.response(try client.readFrame(), returning: UsersImportResponse.self)
            }
            #expect(limit?.reason == "MESSAGE_LIMIT")
        }
    }

    // W27
    @Test func fieldsAreBoundedBeforeTheyAreWorkedOn() async throws {
        try await withServer { server in
            let client = try server.connect()
            let long = String(repeating: "x", count: 300_000)
            let requests: [(UsersCreateRequest, String)] = [
                (UsersCreateRequest(email: "a@example.com", password: Secret(long)), "PASSWORD_TOO_LONG"),
                (UsersCreateRequest(displayName: Text(String(long.prefix(257)))), "INVALID_DISPLAY_NAME"),
                (UsersCreateRequest(uid: Text(String(long.prefix(129)))), "INVALID_UID"),
                (UsersCreateRequest(email: Text(String(long.prefix(300)) + "@example.com")), "INVALID_EMAIL"),
                (UsersCreateRequest(photoURL: Text("https://x/" + String(long.prefix(2_048)))), "INVALID_PHOTO_URL"),
            ]
            _ = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            for (request, reason) in requests {
                let failure = #expect(throws: Failure.self) {
                    try client.call("postern.v1.Users/Create", request, returning: UsersCreateResponse.self)
                }
                #expect(failure?.reason == reason)
            }
        }
    }

    // W28
    @Test func anUnknownMethodIsUnimplemented() async throws {
        try await withServer { server in
            let client = try server.connect()
            for name in ["postern.v1.Users/Nothing", "postern.v1.Nothing/Get", "postern.store.v1.Users/Get"] {
                let failure = #expect(throws: Failure.self) {
                    try client.call(name, UsersGetRequest(), returning: UsersGetResponse.self)
                }
                #expect(failure?.code == .unimplemented)
            }
            let shape = #expect(throws: Failure.self) {
                try client.call(
                    "grpc.health.v1.Health/Watch", GRPCHealthCheckRequest(), returning: GRPCHealthCheckResponse.self)
            }
            #expect(shape?.reason == "WRONG_METHOD_SHAPE")
        }
    }

    // W52
    @Test func failuresTellNothingOfTheInside() async throws {
        try await withServer { server in
            let client = try server.connect()
            var texts: [String] = []
            func collect(_ name: String, _ message: some Message) {
                do {
                    _ = try client.call(name, message, returning: RawMessage.self)
                } catch let failure as Failure {
                    texts.append(failure.message + failure.metadata.map(\.value).joined())
                } catch {}
            }
            collect("postern.v1.Users/Get", UsersGetRequest(uid: "nobody"))
            collect("postern.v1.Users/Get", UsersGetRequest(uid: Text(String(repeating: "x", count: 5_000))))
            collect("postern.v1.Users/Get", RawMessage(bytes: [0x0B]))
            collect("postern.v1.Users/Get", UsersGetRequest(tenantID: "none", uid: "x"))
            collect("postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: "a.b.c"))
            collect("postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: "x"))
            collect("postern.v1.Nothing/Nothing", UsersGetRequest())
            #expect(texts.count == 7)
            for text in texts {
                for inside in ["MDB", "LMDB", "OpenSSL", "0x", "/tmp", ".swift", "errno", "StoreError"] {
                    #expect(!text.contains(inside), "\(text)")
                }
            }
        }
    }

    // W53. ArenaTests tries every size of budget up to the first that is enough.
    @Test func aMessageAboveItsMemoryBudgetIsRefused() async throws {
        try await withServer(configure: {
            $0.limits.messages.arenaBudgetFloor = 64
            $0.limits.messages.arenaBudgetFactor = 1
        }) { server in
            let client = try server.connect()
            let failure = #expect(throws: Failure.self) {
                try client.call(
                    "postern.v1.Tenants/Create",
                    TenantsCreateRequest(tenantID: "acme", tenant: Messages.Tenant(displayName: "Acme")),
                    returning: TenantsCreateResponse.self)
            }
            #expect(failure?.reason == "MESSAGE_TOO_LARGE")
            #expect(failure?.code == .resourceExhausted)
        }
    }

    /// Stock ttrpc: a request written by hand from the published protocol, not by our encoder.
    @Test func stockTtrpcFramingWorksForUnaryCalls() async throws {
        try await withServer { server in
            let client = try server.connect(authenticated: false)
            let service = [UInt8]("grpc.health.v1.Health".utf8)
            let method = [UInt8]("Check".utf8)
            // Request { service = 1, method = 2 }: tags 0x0A and 0x12, each with a length of one byte.
            let request = [0x0A, UInt8(service.count)] + service + [0x12, UInt8(method.count)] + method
            // Length and stream id big-endian, type 1, no flags.
            try client.send([0, 0, 0, UInt8(request.count), 0, 0, 0, 1, 0x01, 0x00] + request)
            let frame = try client.readFrame()
            #expect(frame.header.stream == 1)
            #expect(frame.header.type == .response)
            // Response { payload = 2 }: HealthCheckResponse { status = 1 } is the bytes 08 01, SERVING.
            #expect(frame.payload.starts(with: [0x12, 0x02, 0x08, 0x01]) || contains(frame.payload, [0x12, 2, 8, 1]))
        }
    }

    private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: part) }
    }
}

/// A message of any bytes.
private struct RawMessage: Message {
    var bytes: [UInt8] = []

    init() {}
    init(bytes: [UInt8]) { self.bytes = bytes }
    init(decoding bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(DecodeError) {
        self.bytes = [UInt8](bytes)
    }

    func encode(into buffer: inout ByteBuffer) { buffer.append(contentsOf: bytes) }
    var encodedByteCount: Int { bytes.count }
}
