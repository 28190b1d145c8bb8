import Base
import Identity
import JSON
import Messages
import Service
import Store
import TestSupport
import Testing
import Wire

/// Bringing users in with the passwords they have.
@Suite struct ImportTests {
    /// One import stream of a raw client.
    struct Stream {
        let client: RawClient
        let stream: UInt32

        init(_ client: RawClient, _ first: UsersImportRequest) throws {
            self.client = client
            self.stream = client.nextStream()
            try client.send(client.request("postern.v1.Users/Import", first, stream: stream, kind: .remoteOpen))
        }

        func send(_ users: [ImportUser]) throws {
            var buffer = ByteBuffer()
            buffer.appendData(stream: stream) { UsersImportRequest(users: users).encode(into: &$0) }
            try client.send(buffer.copyBytes())
        }

        func answer() throws -> UsersImportResponse {
            let frame = try client.readFrame()
            if frame.header.type == .response { return try RawClient.response(frame) }
            return try UsersImportResponse(decoding: frame.payload)
        }

        func end() throws {
            var buffer = ByteBuffer()
            buffer.appendDataEnd(stream: stream)
            try client.send(buffer.copyBytes())
            #expect(try client.readFrame().header.flags.contains(.remoteClosed))
        }
    }

    static func importing(
        _ client: RawClient, _ users: [ImportUser], spec: PasswordHashSpec.Algorithm? = nil,
        onConflict: ImportConflict = .fail, tenantID: Text = .empty
    ) throws -> UsersImportResponse {
        let stream = try Stream(
            client,
            UsersImportRequest(
                tenantID: tenantID, spec: spec.map { PasswordHashSpec(algorithm: $0) }, onConflict: onConflict,
                users: users))
        let answer = try stream.answer()
        try stream.end()
        return answer
    }

    // MARK: Passwords of other systems

    private static func decoded(_ base64: String) throws -> [UInt8] {
        try #require(Base64.standard.decode([UInt8](base64.utf8)))
    }

    @Test func firebasePasswordsSignInAndAreRehashedOnce() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            // The published vector of github.com/firebase/scrypt.
            let scrypt = FirebaseScryptSpec(
                signerKey: Secret(
                    try Self.decoded(
                        "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==")),
                saltSeparator: [7], rounds: 8, memoryCost: 14)
            let hash = try Self.decoded(
                "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==")
            let salt = try Self.decoded("42xEC+ixf3L2lw==")
            let answer = try Self.importing(
                client.client,
                [
                    ImportUser(
                        uid: "f1", email: "user1@test.com", passwordHash: Secret(hash), salt: salt)
                ], spec: .firebaseScrypt(scrypt))
            #expect(answer.createdCount == 1 && answer.rejections.isEmpty && answer.checkpoint == 1)
            let before = try Self.storedHash(server, "f1")
            expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("user1@test.com", password: "wrong") }
            #expect(try client.signIn("user1@test.com", password: "user1password").user?.uid == "f1")
            let after = try Self.storedHash(server, "f1")
            #expect(before != after && after.hasPrefix("$argon2id$"))
            #expect(try client.signIn("user1@test.com", password: "user1password").user?.uid == "f1")
            #expect(try Self.storedHash(server, "f1") == after)
        }
    }

    @Test(arguments: PasswordVector.all)
    func `A password of another system signs in, and is rehashed`(_ vector: PasswordVector) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let row = ImportUser(
                uid: "f1", email: "user1@test.com", passwordHash: Secret(vector.hash), salt: PasswordVector.salt)
            let answer = try Self.importing(client.client, [row], spec: vector.algorithm)
            #expect(answer.createdCount == 1 && answer.rejections.isEmpty, "\(answer.rejections)")
            expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("user1@test.com", password: "wrong") }
            #expect(try client.signIn("user1@test.com", password: PasswordVector.password).user?.uid == "f1")
            #expect(try Self.storedHash(server, "f1").hasPrefix("$argon2id$"))
        }
    }

    @Test(
        arguments: [
            .digest(DigestSpec(rounds: 1)), .digest(DigestSpec(function: .sha1, rounds: 9_000)),
            .hmac(HmacSpec(function: .sha1)), .hmac(HmacSpec(signerKey: Secret("k"))),
            .pbkdf2(Pbkdf2Spec(function: .md5, rounds: 1)), .pbkdf2(Pbkdf2Spec(function: .sha1, rounds: 0)),
            .scrypt(ScryptSpec(memoryCost: 1_000, blockSize: 8, parallelization: 1)),
            .scrypt(ScryptSpec(memoryCost: .min, blockSize: .min, parallelization: .max)),
            .scrypt(ScryptSpec(memoryCost: 1_048_576, blockSize: 32, parallelization: 1)),
            .argon2(Argon2Spec(memoryKib: 64, iterations: 1, parallelism: 1)),
            .argon2(Argon2Spec(variant: .d, version: 18, memoryKib: 64, iterations: 1, parallelism: 1)),
            .argon2(Argon2Spec(variant: .i, memoryKib: 262_145, iterations: 1, parallelism: 1)),
            .argon2(Argon2Spec(variant: .i, memoryKib: .min, iterations: .max, parallelism: .min)),
            .argon2(
                Argon2Spec(
                    variant: .id, memoryKib: 64, iterations: 1, parallelism: 1,
                    associatedData: [UInt8](repeating: 1, count: 65))),
        ] as [PasswordHashSpec.Algorithm])
    func `A spec with numbers outside of their range is refused`(_ spec: PasswordHashSpec.Algorithm) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            expectRefusal("INVALID_HASH_SPEC") { _ = try Self.importing(client.client, [], spec: spec) }
        }
    }

    @Test(
        arguments: [
            // The vectors of Openwall's crypt_blowfish and of Argon2's reference implementation.
            (
                PasswordHashSpec.Algorithm.bcrypt(BcryptSpec()), "U*U",
                "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
            ),
            (.bcrypt(BcryptSpec()), "U*U*U", "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"),
            (
                .argon2id(Argon2idSpec()), "password",
                "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
            ),
            (
                .argon2id(Argon2idSpec()), "password",
                "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8"
            ),
            (
                .argon2id(Argon2idSpec()), "password",
                "$argon2d$v=16$m=64,t=2,p=2$c29tZXNhbHQ$MNuw9TbSSeJgJiNF/O91Qs9uzB1YTCcLuDDeNyxndg4"
            ),
        ] as [(PasswordHashSpec.Algorithm, Text, String)])
    func publishedHashesSignIn(_ spec: PasswordHashSpec.Algorithm, _ password: Text, _ hash: String) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let answer = try Self.importing(
                client.client,
                [ImportUser(uid: "u", email: "u@test.com", passwordHash: Secret([UInt8](hash.utf8)))], spec: spec)
            #expect(answer.rejections.isEmpty)
            #expect(try client.signIn("u@test.com", password: password).user?.uid == "u")
            expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("u@test.com", password: "other") }
            #expect(try Self.storedHash(server, "u").hasPrefix("$argon2id$v=19$"))
        }
    }

    /// As Firebase's REST interface has it: the parameters in the request, the salt with the user.
    @Test func `argon2 with its salt apart signs in, and is rehashed`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let spec = Argon2Spec(
                variant: .id, memoryKib: 64, iterations: 2, parallelism: 1, associatedData: [UInt8]("app".utf8))
            let row = ImportUser(
                uid: "u", email: "u@test.com",
                passwordHash: Secret(try Self.decoded("NGwjtrtFaJA+IRZib6tXjkvtr6U81ml06Qm3Dg1tJsw=")),
                salt: [UInt8]("somesalt".utf8))
            #expect(try Self.importing(client.client, [row], spec: .argon2(spec)).rejections.isEmpty)
            #expect(try Self.storedHash(server, "u").hasPrefix("$argon2id$v=19$m=64,t=2,p=1,data=YXBw$"))
            expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("u@test.com", password: "other") }
            #expect(try client.signIn("u@test.com", password: "password").user?.uid == "u")
            #expect(try Self.storedHash(server, "u").hasPrefix("$argon2id$v=19$m=8,t=1,p=1$"))
        }
    }

    @Test func hashesThatWouldCostTooMuchAreRefused() async throws {
        try await withServer { server in
            let client = try server.connect()
            func reason(_ spec: PasswordHashSpec.Algorithm, _ hash: String) throws -> Text? {
                try Self.importing(
                    client, [ImportUser(uid: "u", email: "u@x.com", passwordHash: Secret([UInt8](hash.utf8)))],
                    spec: spec
                ).rejections.first?.reason
            }
            let argon = "c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
            for parameters in ["m=4194304,t=2,p=1", "m=256,t=4000000000,p=1", "m=256,t=2,p=64"] {
                #expect(
                    try reason(.argon2id(Argon2idSpec()), "$argon2id$v=19$\(parameters)$\(argon)")
                        == "INVALID_PASSWORD_HASH")
            }
            #expect(
                try reason(.bcrypt(BcryptSpec()), "$2b$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")
                    == "INVALID_PASSWORD_HASH")
            #expect(try reason(.bcrypt(BcryptSpec()), "plain text") == "INVALID_PASSWORD_HASH")
        }
    }

    /// The hash of a user's password in the store.
    private static func storedHash(_ server: TestServer, _ uid: Text) throws -> String {
        try server.project.store.read { transaction in
            try transaction.get(Tables.users, UserKey(.empty, uid))?.passwordHash.string ?? ""
        }
    }

    // MARK: Rows and batches

    @Test func aRowThatIsRefusedDoesNotStopTheOthers() async throws {
        try await withServer { server in
            let client = try server.connect()
            let stream = try Stream(
                client,
                UsersImportRequest(
                    onConflict: .fail,
                    users: [
                        ImportUser(uid: "a", email: "a@x.com"), ImportUser(uid: "", email: "b@x.com"),
                        ImportUser(uid: "c", email: "nonsense"), ImportUser(uid: "d", email: "A@x.com"),
                        ImportUser(uid: "a", email: "e@x.com"),
                        ImportUser(uid: "f", customClaimsJSON: [UInt8](#"{"sub":1}"#.utf8)),
                        ImportUser(uid: "g", providers: [ProviderInfo(providerID: "google.com", rawID: "1")]),
                        ImportUser(uid: "h", providers: [ProviderInfo(providerID: "google.com", rawID: "1")]),
                    ]))
            let first = try stream.answer()
            #expect(first.createdCount == 2 && first.checkpoint == 8)
            #expect(
                first.rejections.map { "\($0.index) \($0.reason)" } == [
                    "1 INVALID_UID", "2 INVALID_EMAIL", "3 EMAIL_EXISTS", "4 DUPLICATE_LOCAL_ID",
                    "5 FORBIDDEN_CLAIM", "7 FEDERATED_USER_ID_ALREADY_LINKED",
                ])
            try stream.send([ImportUser(uid: "z"), ImportUser(uid: "z")])
            let second = try stream.answer()
            #expect(second.createdCount == 3 && second.checkpoint == 10)
            #expect(second.rejections.map(\.index) == [9])
            try stream.end()
        }
    }

    @Test(
        arguments: [
            (ImportConflict.fail, 0, 0, "DUPLICATE_LOCAL_ID", "Old"), (.skip, 0, 1, nil, "Old"),
            (.replace, 1, 0, nil, "New"),
        ] as [(ImportConflict, Int64, Int64, Text?, Text)])
    func aUidThatExistsFollowsTheConflictMode(
        _ mode: ImportConflict, _ replaced: Int64, _ skipped: Int64, _ reason: Text?, _ name: Text
    ) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let old = try client.signUp("old@x.com")
            let uid = old.user!.uid
            try client.update(uid, ["display_name"]) { $0.displayName = "Old" }
            let answer = try Self.importing(
                client.client, [ImportUser(uid: uid, email: "new@x.com", displayName: "New")], onConflict: mode)
            #expect(answer.replacedCount == replaced && answer.skippedCount == skipped && answer.createdCount == 0)
            #expect(answer.rejections.first?.reason == reason)
            #expect(try client.get(uid).displayName == name)
            // Nothing of a replaced user survives: not its password, its email, its sessions.
            let isReplaced = mode == .replace
            expectRefusal(isReplaced ? "INVALID_LOGIN_CREDENTIALS" : "") { _ = try client.signIn("old@x.com") }
            expectRefusal(isReplaced ? "TOKEN_EXPIRED" : "") { _ = try client.lookup(old.tokens!.idToken) }
        }
    }

    @Test func aBatchAboveTheLimitIsRefusedWhole() async throws {
        try await withServer(configure: { $0.limits.importBatchMax = 10 }) { server in
            let client = try server.connect()
            let users = (0..<11).map { ImportUser(uid: Text("u\($0)")) }
            let refused = failure { _ = try Self.importing(client, users) }
            #expect(refused.code == .invalidArgument)
            let listed: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest())
            #expect(listed.users.isEmpty)
        }
    }

    @Test func whatWasAcknowledgedBeforeTheConnectionBrokeIsThere() async throws {
        try await withServer { server in
            let client = try server.connect()
            let stream = try Stream(client, UsersImportRequest(onConflict: .fail))
            #expect(try stream.answer().checkpoint == 0)
            for batch in 0..<10 {
                try stream.send(
                    (0..<500).map { ImportUser(uid: Text("b\(batch)u\($0)"), email: Text("b\(batch)u\($0)@x.com")) })
                #expect(try stream.answer().checkpoint == Int64(batch + 1) * 500)
            }
            client.reset()
            let other = try IdentityClient(server)
            for batch in 0..<10 { #expect(try other.get(Text("b\(batch)u499")).email == Text("b\(batch)u499@x.com")) }
            // From the checkpoint on, with SKIP for what was written and not acknowledged.
            let again = try Self.importing(
                other.client, [ImportUser(uid: "b9u499"), ImportUser(uid: "b10u0")], onConflict: .skip)
            #expect(again.skippedCount == 1 && again.createdCount == 1)
        }
    }
}
