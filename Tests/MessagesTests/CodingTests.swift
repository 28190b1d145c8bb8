import Base
import Messages
import Testing

@Suite struct CodingTests {
    private func expectRoundTrip<Value: Message>(_ value: Value) throws {
        let bytes = value.encoded()
        #expect(bytes.count == value.encodedByteCount)
        #expect(try Value(decoding: bytes) == value)
    }

    private var fullUser: User {
        User(
            tenantID: "acme-1", uid: "u1", email: "é@b.example", emailVerified: true, displayName: "名前",
            photoURL: "https://x.example/1", phoneNumber: "+41790000000", disabled: true,
            providers: [ProviderInfo(providerID: "password", rawID: "a"), ProviderInfo(), ProviderInfo(email: "b")],
            customClaimsJSON: [0, 255, 0], createdAtMicros: .max, lastSignInAtMicros: .min, lastRefreshAtMicros: -1,
            tokensValidAfterMicros: 1)
    }

    @Test func `strings, bytes, numbers, repeated and nested messages survive encoding`() throws {
        try expectRoundTrip(fullUser)
        try expectRoundTrip(UsersListResponse(users: [fullUser, User(), fullUser], nextPageToken: "next"))
        try expectRoundTrip(UsersListRequest(pageSize: .min))
        try expectRoundTrip(WireHello(protocolVersion: .max, features: .max))
        try expectRoundTrip(StatsValue(name: "x", value: -0.1))
        try expectRoundTrip(StatsValue(value: .infinity))
        try expectRoundTrip(GRPCExtensionNumberResponse(extensionNumber: [0, -1, .max, .min]))
        try expectRoundTrip(GRPCFileDescriptorResponse(fileDescriptorProto: [[], [1, 2], [0]]))
        try expectRoundTrip(ProtobufFieldMask(paths: ["email", "", "photo_url"]))
    }

    @Test func `every member of a oneof survives, also with an empty value`() throws {
        for tenants in [nil, .all(true), .all(false), .tenantID("acme"), .tenantID("")] as [Scope.Tenants?] {
            try expectRoundTrip(Scope(tenants: tenants))
        }
        try expectRoundTrip(PasswordHashSpec(algorithm: .argon2id(Argon2idSpec())))
        let spec = FirebaseScryptSpec(signerKey: Secret([1, 0, 2]), saltSeparator: [9], rounds: 8, memoryCost: 14)
        try expectRoundTrip(UsersImportRequest(spec: PasswordHashSpec(algorithm: .firebaseScrypt(spec))))
        try expectRoundTrip(GRPCServerReflectionRequest(messageRequest: .listServices("*")))
    }

    @Test func `every value of an enum survives`() throws {
        for role in Role.allCases { try expectRoundTrip(ApiKey(role: role)) }
        for status in GRPCHealthCheckResponse.ServingStatus.allCases {
            try expectRoundTrip(GRPCHealthCheckResponse(status: status))
        }
    }

    @Test func `a map is a list of entries in the order given`() throws {
        let info = GoogleErrorInfo(
            reason: "EMAIL_EXISTS", domain: "postern",
            metadata: [.init(key: "b", value: "1"), .init(key: "a", value: "2")])
        try expectRoundTrip(info)
        let entry = EncodedBytes.text(1, "b") + EncodedBytes.text(2, "1")
        #expect(try GoogleErrorInfo(decoding: EncodedBytes.bytes(3, entry)).metadata == [.init(key: "b", value: "1")])
    }

    @Test func `a present empty sub-message differs from an absent one`() throws {
        try expectRoundTrip(UsersGetResponse(user: nil))
        try expectRoundTrip(UsersGetResponse(user: User()))
        #expect(UsersGetResponse(user: nil).encoded() == [])
        #expect(UsersGetResponse(user: User()).encoded() == [0x0A, 0x00])
        #expect(try UsersGetResponse(decoding: [0x0A, 0x00]) == UsersGetResponse(user: User()))
    }

    @Test func `the bytes are those of the protobuf encoding`() {
        #expect(
            UsersGetRequest(tenantID: "ab", uid: "c", includeLastRefresh: true).encoded()
                == [0x0A, 2, 0x61, 0x62, 0x12, 1, 0x63, 0x18, 1])
        #expect(GRPCExtensionNumberResponse(extensionNumber: [1, 300]).encoded() == [0x12, 3, 1, 0xAC, 2])
        #expect(StatsValue(value: 1).encoded() == [0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F])
    }

    @Test func `repeated numbers are read packed and one by one`() throws {
        let mixed = EncodedBytes.integer(2, 1) + EncodedBytes.bytes(2, [2, 3]) + EncodedBytes.integer(2, 4)
        #expect(try GRPCExtensionNumberResponse(decoding: mixed).extensionNumber == [1, 2, 3, 4])
    }

    @Test func `no bytes are the empty message`() throws {
        #expect(try User(decoding: []) == User())
        #expect(try UsersDeleteResponse(decoding: EncodedBytes.integer(5, 1)) == UsersDeleteResponse())
        #expect(User().encoded() == [])
    }

    @Test func `encoding appends to what the buffer holds`() {
        var buffer = ByteBuffer()
        buffer.append(7)
        UsersGetRequest(uid: "c").encode(into: &buffer)
        #expect(buffer.copyBytes() == [7, 0x12, 1, 0x63])
    }

    @Test func `a secret survives encoding and is not printed`() throws {
        let request = AccountsSignUpRequest(email: "a@b.example", password: Secret("hunter22"))
        try expectRoundTrip(request)
        #expect(!"\(request)".contains("hunter22"))
    }

    @Test func `any bytes decode to a value that encodes and decodes to itself, or are refused`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(state: seed)
        let start = UsersListResponse(users: [fullUser, fullUser], nextPageToken: "x").encoded()
        var accepted = 0
        for _ in 0..<20_000 {
            var bytes = start
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0 ... .max, using: &random)
                case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                case 2: bytes.remove(at: index)
                default: bytes.insert(UInt8.random(in: 0 ... .max, using: &random), at: index)
                }
            }
            guard let value = try? UsersListResponse(decoding: bytes) else { continue }
            accepted += 1
            #expect(try UsersListResponse(decoding: value.encoded()) == value, "seed \(seed)")
        }
        #expect(accepted > 0, "seed \(seed)")
    }
}

/// Sebastiano Vigna's SplitMix64: reproducible from its seed.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
