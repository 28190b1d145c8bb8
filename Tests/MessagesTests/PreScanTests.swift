import Base
import Messages
import Testing

@Suite struct PreScanTests {
    private func refusal<Value: Message>(
        _ type: Value.Type, _ bytes: [UInt8], _ change: (inout MessageLimits) -> Void = { _ in }
    ) -> DecodeError? {
        var limits = MessageLimits()
        change(&limits)
        do throws(DecodeError) {
            _ = try Value(decoding: bytes, limits: limits)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a sub-message that occurs 131072 times in 512 KiB is refused at the second`() {
        let once = EncodedBytes.bytes(3, EncodedBytes.bytes(1, []))
        let bytes = [UInt8](repeatElement(once, count: 131_072).joined())
        #expect(bytes.count == 512 * 1024)
        #expect(refusal(UsersUpdateRequest.self, bytes) == .duplicate(field: "update_mask"))
    }

    @Test func `a scalar, a string and a sub-message may each occur once`() {
        let email = EncodedBytes.text(2, "a@b.example")
        #expect(refusal(AccountsSignUpRequest.self, email) == nil)
        #expect(refusal(AccountsSignUpRequest.self, email + email) == .duplicate(field: "email"))
        let flag = EncodedBytes.integer(4, 1)
        #expect(refusal(User.self, flag + EncodedBytes.integer(4, 0)) == .duplicate(field: "email_verified"))
    }

    @Test func `a second member of a oneof is refused`() {
        let both = EncodedBytes.integer(1, 1) + EncodedBytes.text(2, "acme")
        #expect(refusal(Scope.self, both) == .duplicate(field: "tenant_id"))
        let twice = EncodedBytes.integer(1, 1) + EncodedBytes.integer(1, 1)
        #expect(refusal(Scope.self, twice) == .duplicate(field: "all"))
    }

    @Test func `an error inside a sub-message names the whole path`() {
        let duplicate = EncodedBytes.text(3, "a") + EncodedBytes.text(3, "b")
        #expect(refusal(UsersGetResponse.self, EncodedBytes.bytes(1, duplicate)) == .duplicate(field: "user.email"))
        let text = EncodedBytes.bytes(1, EncodedBytes.bytes(9, EncodedBytes.bytes(1, [0xFF])))
        #expect(refusal(UsersGetResponse.self, text) == .text(field: "user.providers.provider_id"))
    }

    @Test(arguments: [3, 4, 6, 7] as [UInt64])
    func `groups and wire types 6 and 7 are malformed`(wireType: UInt64) {
        #expect(refusal(UsersGetRequest.self, EncodedBytes.tag(1, wireType)) == .malformed)
        #expect(refusal(UsersGetRequest.self, EncodedBytes.tag(100, wireType)) == .malformed)
    }

    @Test func `field number 0 is malformed and 2^29-1 is the last one`() {
        #expect(refusal(UsersGetRequest.self, EncodedBytes.integer(0, 1)) == .malformed)
        #expect(refusal(UsersGetRequest.self, EncodedBytes.integer((1 << 29) - 1, 1)) == nil)
        #expect(refusal(UsersGetRequest.self, EncodedBytes.integer(1 << 29, 1)) == .malformed)
        #expect(refusal(UsersGetRequest.self, EncodedBytes.tag(UInt64.max >> 3, 0) + [1]) == .malformed)
    }

    @Test func `a varint has one spelling of at most ten bytes`() {
        let number = EncodedBytes.tag(11, 0)
        let nine = [UInt8](repeating: 0xFF, count: 9)
        #expect(refusal(User.self, number + nine + [0x01]) == nil)
        #expect(refusal(User.self, number + nine + [0x02]) == .malformed)
        #expect(refusal(User.self, number + nine + [0x81, 0x00]) == .malformed)
        #expect(refusal(User.self, number + [0x81, 0x00]) == .malformed)
        #expect(refusal(User.self, number + nine) == .malformed)
        #expect(refusal(User.self, [0xD8, 0x80, 0x00, 0x01]) == .malformed)
        #expect(refusal(User.self, EncodedBytes.tag(1, 2) + [0x80, 0x00]) == .malformed)
    }

    @Test func `a varint must fit the type of its field`() {
        #expect(refusal(UsersListRequest.self, EncodedBytes.integer(2, UInt64(Int32.max))) == nil)
        #expect(refusal(UsersListRequest.self, EncodedBytes.integer(2, 1 << 31)) == .malformed)
        #expect(refusal(UsersListRequest.self, EncodedBytes.integer(2, UInt64(bitPattern: -1))) == nil)
        #expect(refusal(WireWindow.self, EncodedBytes.integer(1, UInt64(UInt32.max))) == nil)
        #expect(refusal(WireWindow.self, EncodedBytes.integer(1, 1 << 32)) == .malformed)
        #expect(refusal(UsersGetRequest.self, EncodedBytes.integer(3, 2)) == .malformed)
    }

    @Test func `a known field with another wire type is malformed`() {
        #expect(refusal(UsersGetRequest.self, EncodedBytes.integer(1, 1)) == .malformed)
        #expect(refusal(UsersGetRequest.self, EncodedBytes.text(3, "x")) == .malformed)
        #expect(refusal(StatsValue.self, EncodedBytes.tag(2, 5) + [0, 0, 0, 0]) == .malformed)
        #expect(refusal(UsersListResponse.self, EncodedBytes.integer(1, 1)) == .malformed)
    }

    @Test func `every cut of a message is malformed`() {
        let user = User(tenantID: "acme", uid: "u1", email: "a@b.example", createdAtMicros: 1)
        let whole = UsersGetResponse(user: user).encoded()
        for count in 1..<whole.count {
            #expect(refusal(UsersGetResponse.self, [UInt8](whole.prefix(count))) == .malformed)
        }
    }

    @Test func `an enum value this version does not know is refused`() {
        #expect(refusal(WireCancel.self, EncodedBytes.integer(1, 7)) == nil)
        #expect(refusal(WireCancel.self, EncodedBytes.integer(1, 8)) == .enumValue(field: "code"))
        #expect(refusal(WireCancel.self, EncodedBytes.integer(1, 64)) == .enumValue(field: "code"))
        for value: UInt64 in [65, 64 + 7, 127, 128, 128 + 7] {
            #expect(refusal(WireCancel.self, EncodedBytes.integer(1, value)) == .enumValue(field: "code"))
        }
        // Values above 63 are bits of a second word.
        #expect(refusal(EventRecord.self, EncodedBytes.integer(2, 72)) == nil)
        #expect(refusal(EventRecord.self, EncodedBytes.integer(2, 72 - 64)) == nil)
        for value: UInt64 in [79, 128, 139, 191, 192, 1_024, 1 << 40] {
            #expect(refusal(EventRecord.self, EncodedBytes.integer(2, value)) == .enumValue(field: "kind"))
        }
        // Values from 128 on lie in a third word.
        #expect(refusal(EventRecord.self, EncodedBytes.integer(2, 127)) == nil)
        #expect(refusal(EventRecord.self, EncodedBytes.integer(2, 140)) == nil)
        #expect(refusal(WireCancel.self, EncodedBytes.integer(1, UInt64(bitPattern: -1))) == .enumValue(field: "code"))
    }

    @Test(
        arguments: [
            [0x00], [0x61, 0x00, 0x62], [0xFF], [0x80], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82],
            [0xF4, 0x90, 0x80, 0x80],
        ] as [[UInt8]])
    func `a text field holds well-formed UTF-8 without NUL`(content: [UInt8]) {
        #expect(refusal(AccountsSignUpRequest.self, EncodedBytes.bytes(2, content)) == .text(field: "email"))
        #expect(refusal(AccountsSignUpRequest.self, EncodedBytes.bytes(3, content)) == .text(field: "password"))
        #expect(refusal(TokensRefreshRequest.self, EncodedBytes.bytes(3, content)) == nil)
    }

    @Test func `unknown fields are skipped up to their limit over all levels`() {
        let unknown = EncodedBytes.integer(99, 1)
        let many = { (count: Int) in [UInt8](repeatElement(unknown, count: count).joined()) }
        #expect(refusal(UsersGetRequest.self, many(32)) == nil)
        #expect(refusal(UsersGetRequest.self, many(33)) == .limit("unknown fields"))
        let nested = EncodedBytes.bytes(1, many(16)) + many(16)
        #expect(refusal(UsersGetResponse.self, nested) == nil)
        #expect(refusal(UsersGetResponse.self, nested + unknown) == .limit("unknown fields"))
    }

    @Test func `an unknown field of any wire type is skipped and not encoded again`() throws {
        let known = UsersGetRequest(tenantID: "acme", uid: "u1")
        let unknown: [[UInt8]] = [
            EncodedBytes.integer(99, 1), EncodedBytes.tag(99, 1) + [UInt8](repeating: 7, count: 8),
            EncodedBytes.text(99, "x"), EncodedBytes.tag(99, 5) + [1, 2, 3, 4],
        ]
        let value = try UsersGetRequest(decoding: unknown.flatMap { $0 } + known.encoded())
        #expect(value == known)
        #expect(value.encoded() == known.encoded())
    }

    @Test func `a message has at most its limit of fields, repeated and packed elements included`() {
        let element = EncodedBytes.integer(2, 5)
        let many = { (count: Int) in [UInt8](repeatElement(element, count: count).joined()) }
        // protobuf-c keeps 32 bytes, doubled as it grows, of each element that stands alone.
        #expect(refusal(GRPCExtensionNumberResponse.self, many(1_024)) { $0.arenaBudgetFloor = 128 * 1024 } == nil)
        #expect(refusal(GRPCExtensionNumberResponse.self, many(1_025)) == .limit("fields per message"))
        let packed = { (count: Int) in EncodedBytes.bytes(2, [UInt8](repeating: 5, count: count)) }
        #expect(refusal(GRPCExtensionNumberResponse.self, packed(1_024)) == nil)
        #expect(refusal(GRPCExtensionNumberResponse.self, packed(1_025)) == .limit("fields per message"))
        #expect(refusal(GRPCExtensionNumberResponse.self, packed(1_000_000)) == .limit("fields per message"))
        let empty = [UInt8](repeatElement(EncodedBytes.bytes(1, []), count: 1_025).joined())
        #expect(refusal(UsersListResponse.self, empty) == .limit("fields per message"))
    }

    @Test func `all levels together have at most their limit of fields`() {
        let user = EncodedBytes.bytes(1, EncodedBytes.text(2, "u"))
        let bytes = [UInt8](repeatElement(user, count: 10).joined())
        #expect(refusal(UsersListResponse.self, bytes) { $0.fieldsMax = 20 } == nil)
        #expect(refusal(UsersListResponse.self, bytes) { $0.fieldsMax = 19 } == .limit("fields"))
    }

    @Test func `a row of an import knows what the limits will count`() {
        let provider = ProviderInfo(providerID: "google.com", rawID: "1", email: "a@b.example")
        let factor = ImportSecondFactor(factor: SecondFactor(kind: .totp, displayName: "app"), totpSecret: Secret([1]))
        var user = ImportUser(uid: "u", email: "a@b.example", emailVerified: true)
        (user.passwordHash, user.hashSpec) = (Secret([1, 2]), "s")
        (user.providers, user.secondFactors) = ([provider, ProviderInfo()], [factor, factor])
        let (cost, bytes) = (user.decodingCost, user.encoded())
        #expect(cost.byteCount == bytes.count && cost.fieldCount == 5 + (1 + 3 + 1) + 2 * (1 + 2 + 2))
        #expect(refusal(ImportUser.self, bytes) { $0.fieldsMax = cost.fieldCount } == nil)
        #expect(refusal(ImportUser.self, bytes) { $0.fieldsMax = cost.fieldCount - 1 } == .limit("fields"))
        func budget(_ byteCount: Int) -> DecodeError? {
            refusal(ImportUser.self, bytes) { limits in
                (limits.arenaBudgetFactor, limits.arenaBudgetFloor) = (0, byteCount)
            }
        }
        #expect(budget(cost.memoryByteCount) == nil && budget(cost.memoryByteCount - 8) == .budget)
        let scrypt = FirebaseScryptSpec(signerKey: Secret([1]), rounds: 8, memoryCost: 14)
        let spec = NamedHashSpec(name: "s", spec: PasswordHashSpec(algorithm: .firebaseScrypt(scrypt)))
        #expect(spec.decodingCost.fieldCount == 2 + 1 + 3)
    }

    @Test func `a message is at most its limit of levels deep`() {
        let tenant = Tenant(client: ClientConfig(permissions: ClientPermissions(disabledUserSignup: true)))
        let bytes = TenantsGetResponse(tenant: tenant).encoded()
        #expect(refusal(TenantsGetResponse.self, bytes) { $0.depthMax = 4 } == nil)
        #expect(refusal(TenantsGetResponse.self, bytes) { $0.depthMax = 3 } == .limit("message depth"))
    }

    @Test func `ten thousand nested levels are refused`() {
        var bytes: [UInt8] = []
        for _ in 0..<10_000 { bytes = EncodedBytes.bytes(1, bytes) }
        #expect(refusal(UsersListResponse.self, bytes) != nil)
        #expect(refusal(TenantsGetResponse.self, bytes) != nil)
    }
}
