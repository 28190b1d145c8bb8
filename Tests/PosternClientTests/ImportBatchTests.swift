import Base
import Messages
import PosternClient
import Testing

/// The batches of an import, held against the limits of the server.
@Suite struct ImportBatchTests {
    /// A user as an export has many: a password, two providers and an authenticator app.
    private static func user(_ number: Int) -> ImportUser {
        var user = ImportUser(
            uid: Text("user-\(number)"), email: Text("user\(number)@example.com"), emailVerified: true,
            displayName: "User", photoURL: "https://example.com/photo", phoneNumber: "+14155550123")
        user.customClaimsJSON = [UInt8](#"{"plan":"gold"}"#.utf8)
        (user.createdAtMicros, user.lastSignInAtMicros, user.passwordUpdatedAtMicros) = (1, 2, 3)
        (user.passwordHash, user.salt, user.hashSpec) = (Secret([1, 2]), [3], "s")
        user.providers = ["password", "google.com", "phone"].map { (id: Text) in
            ProviderInfo(providerID: id, rawID: "1", email: "a@b.example", displayName: "User", phoneNumber: "+1")
        }
        let factor = SecondFactor(factorID: "f", kind: .totp, displayName: "app", enrolledAtMicros: 4)
        user.secondFactors = [ImportSecondFactor(factor: factor, totpSecret: Secret([5]))]
        return user
    }

    private static func batches(
        of users: [ImportUser], specs: [NamedHashSpec] = []
    ) throws -> [UsersImportRequest] {
        var (batch, full) = (ImportBatch(), [UsersImportRequest]())
        for spec in specs {
            if let before = batch.add(spec) { full.append(before) }
        }
        for user in users {
            if let before = try batch.add(user) { full.append(before) }
        }
        if batch.hasUsers { full.append(batch.take()) }
        return full
    }

    /// Whether the server takes the batch. It is the first one, which has the most fields.
    private static func isTaken(_ batch: UsersImportRequest) throws -> Bool {
        var request = batch
        (request.tenantID, request.onConflict, request.validateOnly) = ("acme", .skip, true)
        request.spec = PasswordHashSpec(
            algorithm: .argon2(
                Argon2Spec(
                    variant: .id, version: 19, memoryKib: 8, iterations: 1, parallelism: 1, associatedData: [1])))
        let bytes = request.encoded()
        return try UsersImportRequest(decoding: bytes) == request && bytes.count < 2 * 1024 * 1024
            && request.users.count <= Limits().importBatchMax
    }

    @Test func `Rows with many fields make smaller batches, each of which the server takes`() throws {
        let users = (0..<1_200).map(Self.user)
        let batches = try Self.batches(of: users)
        #expect(batches.flatMap(\.users) == users)
        for batch in batches { #expect(try Self.isTaken(batch)) }
        // The first batch is not far below the limit: one with 500 rows would be above it.
        let first = try #require(batches.first).users.count
        #expect((200..<500).contains(first))
        let largest = UsersImportRequest(users: Array(users.prefix(500)))
        #expect(throws: DecodeError.limit("fields")) { try UsersImportRequest(decoding: largest.encoded()) }
    }

    @Test func `Small rows fill a batch, and large rows end it by their bytes`() throws {
        let small = (0..<1_001).map { ImportUser(uid: Text("user-\($0)")) }
        #expect(try Self.batches(of: small).map(\.users.count) == [500, 500, 1])
        var large = small.prefix(300).map { $0 }
        for index in large.indices { large[index].photoURL = Text(String(repeating: "x", count: 16_000)) }
        let batches = try Self.batches(of: large)
        #expect(batches.flatMap(\.users) == large && batches.count > 4)
        for batch in batches { #expect(try Self.isTaken(batch)) }
        var enormous = large[0]
        enormous.photoURL = Text(String(repeating: "x", count: 2_000_000))
        #expect(try Self.batches(of: [small[0], enormous, small[1]]).map(\.users.count) == [1, 1, 1])
    }

    /// What the server says of a message with this user alone; "" if it takes it.
    private static func refusal(of user: ImportUser) -> String {
        do throws(DecodeError) {
            _ = try UsersImportRequest(decoding: UsersImportRequest(users: [user]).encoded())
            return ""
        } catch {
            return error == .limit("fields per message") ? "MESSAGE_LIMIT" : "MESSAGE_TOO_LARGE"
        }
    }

    @Test func `A user that no message can hold is refused, and the batch goes on`() throws {
        var (many, empty, large) = (ImportUser(uid: "many"), ImportUser(uid: "empty"), ImportUser(uid: "large"))
        many.providers = (0..<1_100).map { ProviderInfo(providerID: "oidc.p", rawID: Text("\($0)")) }
        // Each has 2 bytes in the message, and far more in memory.
        empty.providers = [ProviderInfo](repeating: ProviderInfo(), count: 100_000)
        large.customClaimsJSON = [UInt8](repeating: 0x20, count: 5_000_000)
        var batch = ImportBatch()
        let first = try batch.add(ImportUser(uid: "a"))
        #expect(first == nil)
        for (user, wanted) in [(many, "MESSAGE_LIMIT"), (empty, "MESSAGE_LIMIT"), (large, "MESSAGE_TOO_LARGE")] {
            let failure = #expect(throws: Failure.self) { try batch.add(user) }
            #expect(failure?.reason == wanted, "\(user.uid)")
        }
        #expect(Self.refusal(of: many) == "MESSAGE_LIMIT" && Self.refusal(of: empty) == "MESSAGE_LIMIT")
        // The greatest user that fits.
        many.providers.removeLast(1_100 - 1_023)
        #expect(Self.refusal(of: many).isEmpty)
        let full = try batch.add(many)
        #expect(full == nil && batch.take().users.map(\.uid) == ["a", "many"])
    }

    @Test func `Hash specs count as well`() throws {
        let specs = (0..<1_000).map { number in
            NamedHashSpec(
                name: Text("spec-\(number)"),
                spec: PasswordHashSpec(
                    algorithm: .firebaseScrypt(
                        FirebaseScryptSpec(signerKey: Secret([1]), saltSeparator: [2], rounds: 8, memoryCost: 14))))
        }
        let users = (0..<500).map(Self.user)
        let batches = try Self.batches(of: users, specs: specs)
        #expect(batches.flatMap(\.hashSpecs) == specs && batches.flatMap(\.users) == users)
        for batch in batches { #expect(try Self.isTaken(batch)) }
        #expect(batches.map(\.hashSpecs.count).max() == 500)
    }

    @Test func `The import's own fields are in the first batch only`() throws {
        var batch = ImportBatch(UsersImportRequest(tenantID: "acme", onConflict: .skip))
        #expect(!batch.hasUsers)
        let full = try batch.add(ImportUser(uid: "a"))
        #expect(full == nil && batch.hasUsers)
        #expect(batch.take() == UsersImportRequest(tenantID: "acme", onConflict: .skip, users: [ImportUser(uid: "a")]))
        #expect(!batch.hasUsers && batch.take() == UsersImportRequest())
    }
}
