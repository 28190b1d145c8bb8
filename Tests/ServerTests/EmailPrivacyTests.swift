import Base
import Crypto
import Glibc
import Messages
import Reactor
import Store
import Synchronization
import TestSupport
import Testing

@testable import Identity
@testable import Service

/// A caller who knows an address does not learn from the server's work whether the address has an account. The work
/// is counted, not timed: hashes by kind, writes, records and their sizes.
@Suite struct EmailPrivacyTests {
    // MARK: Passwords

    /// A password hash of another system, as the tenant's imported users have it.
    private struct Imported {
        var spec: PasswordHashSpec.Algorithm?
        var hash: [UInt8]
        var salt: [UInt8] = []
    }

    private static func imported(_ kind: PasswordCredential.Kind) -> Imported {
        switch kind {
        case .argon2id: argon2("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4")
        case .argon2i: argon2("$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8")
        case .argon2d: argon2("$argon2d$v=19$m=64,t=3,p=1$c29tZXNhbHQ$Td+flmEPdzlBmNgJjjSsA7TcTztt5/4XCpTtkPQg7CI")
        case .bcrypt:
            Imported(
                spec: .bcrypt(BcryptSpec()),
                hash: [UInt8]("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW".utf8))
        case .firebaseScrypt:
            Imported(
                spec: .firebaseScrypt(
                    FirebaseScryptSpec(
                        signerKey: Secret([UInt8](repeating: 7, count: 64)), saltSeparator: [7], rounds: 8,
                        memoryCost: 14)),
                hash: [UInt8](repeating: 9, count: 64), salt: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
        default: foreign(kind)
        }
    }

    private static func argon2(_ line: String) -> Imported {
        Imported(spec: .argon2id(Argon2idSpec()), hash: [UInt8](line.utf8))
    }

    private static func foreign(_ kind: PasswordCredential.Kind) -> Imported {
        let vector = PasswordVector.all.first { vector in
            (try? PasswordCredential(vector.scheme, hash: vector.hash, salt: PasswordVector.salt))?.kind == kind
        }
        guard let vector else {
            return Imported(
                spec: .pbkdf2(Pbkdf2Spec(function: .sha512, rounds: 1_000)), hash: [UInt8](repeating: 9, count: 64))
        }
        return Imported(spec: vector.algorithm, hash: vector.hash, salt: PasswordVector.salt)
    }

    private static func add(
        _ addresses: [Text], with kind: PasswordCredential.Kind, to server: TestServer
    ) async throws {
        let project = server.project
        let settings = try project.store.read { try project.tenants.settings(of: .empty, in: $0) }
        let imported = imported(kind)
        var importer = try await project.imports.begin(
            UsersImportRequest(spec: PasswordHashSpec(algorithm: imported.spec), onConflict: .fail),
            settings: settings, origin: .server)
        let users = addresses.map {
            ImportUser(
                uid: Text($0.string.replacing("@", with: "-")), email: $0, passwordHash: Secret(imported.hash),
                salt: imported.salt)
        }
        let answer = try await importer.importBatch(UsersImportRequest(users: users), workTurn: {})
        #expect(answer.createdCount == Int64(addresses.count))
    }

    /// The work of the server for one refused sign-in.
    private struct Work: Equatable {
        var hashes: [String: UInt64] = [:]
        var writes: UInt64 = 0
    }

    /// The server writes guesses each second, whoever made them. Here that would count as the work of one sign-in.
    @Sendable private static func withoutJournal(_ configuration: inout Instance.Configuration) {
        configuration.limits.guessesKeptPerSecond = 0
    }

    /// A hash whose thread gets no processor is begun once more, for any address. Then the sign-in is repeated.
    private static func workOfRefusing(
        _ address: Text, _ password: Text, _ client: IdentityClient
    ) throws -> Work {
        for _ in 0..<20 {
            let pool = client.server.instance.passwordPool
            // The first hash goes on, and counts, when its thread has a processor again.
            try blockUntil("no hash is under way") { pool.counts.memoryByteCount == 0 }
            let repeated = pool.counts.repeated
            let work = try workOfRefusingOnce(address, password, client)
            if pool.counts.repeated == repeated { return work }
        }
        Issue.record("the machine is too busy to count the hashes of one sign-in")
        return Work()
    }

    private static func workOfRefusingOnce(
        _ address: Text, _ password: Text, _ client: IdentityClient
    ) throws -> Work {
        let server = client.server
        let before = server.project.passwords.computed.all
        let writes = try server.project.store.statistics().writes
        expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn(address, password: password) }
        var work = Work(writes: try server.project.store.statistics().writes - writes)
        for (old, new) in zip(before, server.project.passwords.computed.all) where new.count > old.count {
            work.hashes[new.kind.rawValue] = new.count - old.count
        }
        return work
    }

    /// The second password is not in NFC: it is tried in both forms, which doubles the work.
    @Test(arguments: PasswordCredential.Kind.allCases, [("guess1", 1), ("cafe\u{301}s", 2)] as [(Text, UInt64)])
    func aRefusedPasswordCostsTheSameForWhomever(
        _ kind: PasswordCredential.Kind, _ attempt: (password: Text, hashCount: UInt64)
    ) async throws {
        try await withServer(configure: Self.withoutJournal) { server in
            let client = try IdentityClient(server)
            try await Self.add(["known@x.com", "disabled@x.com"], with: kind, to: server)
            try client.update("disabled-x.com", ["disabled"]) { $0.disabled = true }
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(email: "passwordless@x.com"))
            let expected = Work(hashes: [kind.rawValue: attempt.hashCount], writes: TestEngine.questionWrites)
            for address in ["known@x.com", "disabled@x.com", "passwordless@x.com", "unknown@x.com"] as [Text] {
                let work = try Self.workOfRefusing(address, attempt.password, client)
                #expect(work == expected, "\(address): \(work)")
            }
        }
    }

    @Test func anUnknownAddressLooksLikeOneUserOfTheTenantsMix() async throws {
        try await withServer(configure: Self.withoutJournal) { server in
            let client = try IdentityClient(server)
            try await Self.add((0..<4).map { Text("a\($0)@x.com") }, with: .argon2id, to: server)
            try await Self.add((0..<4).map { Text("b\($0)@x.com") }, with: .bcrypt, to: server)
            var seen: Set<[String: UInt64]> = []
            for index in 0..<24 {
                let first = try Self.workOfRefusing(Text("nobody\(index)@x.com"), "guess1", client)
                // The hash is always the same: asking twice tells no more than asking once.
                server.clock.advance(by: .hours(1))
                let again = try Self.workOfRefusing(Text("NOBODY\(index)@x.com"), "guess1", client)
                #expect(first == again)
                seen.insert(first.hashes)
            }
            #expect(seen == [["argon2id": 1], ["bcrypt": 1]])
        }
    }

    // MARK: Codes

    /// The codes and the mail in the store.
    private struct Stock: Equatable {
        var writes: UInt64
        var codeCount: Int
        var subjectCount: Int
        var mailCount: Int
        var dueCount: Int
        var wakeCount: UInt64
        var byteCount: Int

        init(_ server: TestServer) throws {
            let store = server.project.store
            writes = try store.statistics().writes
            wakeCount = server.project.mailer.wakeCount.value
            (codeCount, subjectCount, mailCount, dueCount, byteCount) = try store.read { transaction in
                var byteCount = 0
                try transaction.scan(Tables.oobCodes) { row in
                    byteCount += row.value.count
                    return true
                }
                try transaction.scan(Tables.outbox) { row in
                    byteCount += row.value.count
                    return true
                }
                return (
                    try transaction.count(Tables.oobCodes), try transaction.count(Tables.oobCodeBySubject),
                    try transaction.count(Tables.outbox), try transaction.count(Tables.outboxDue), byteCount
                )
            }
        }
    }

    /// Tests both ways in which mail leaves: read from the outbox, or delivered.
    @Test(arguments: [false, true])
    func aCodeForAnUnknownAddressIsWrittenLikeAnyOther(_ isDelivered: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            if isDelivered { try client.deliverByWebhook(url: "https://127.0.0.1:1/mail") }
            await server.project.mailer.stop()  // What it would write in between says nothing of those who asked.
            let made = try client.signUp("known@x.com")
            try client.setTenant(["enable_email_link_signin", "client.permissions.disabled_user_signup"]) {
                $0.enableEmailLinkSignin = true
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(email: "taken@x.com"))
            func change(_ newEmail: Text) throws {
                try client.sendOob(.verifyAndChangeEmail, newEmail: newEmail, idToken: made.tokens!.idToken)
            }
            // A user has one open change of email; this is the first, which the next ones replace.
            try change("first@x.com")
            let pairs: [(() throws -> Void, () throws -> Void)] = [
                (
                    { try client.sendOob(.passwordReset, email: "known@x.com") },
                    { try client.sendOob(.passwordReset, email: "other@x.com") }
                ),
                (
                    { try client.sendOob(.emailSignin, email: "known@x.com") },
                    { try client.sendOob(.emailSignin, email: "other@x.com") }
                ),
                ({ try change("fresh@x.com") }, { try change("taken@x.com") }),
            ]
            for (toSomebody, toNobody) in pairs {
                // The second time, each code replaces the one before, where its kind does so.
                for _ in 0..<2 {
                    let start = try Stock(server)
                    try toSomebody()
                    let middle = try Stock(server)
                    try toNobody()
                    let end = try Stock(server)
                    let writes = 1 + TestEngine.questionWrites
                    #expect(middle.writes - start.writes == writes && end.writes - middle.writes == writes)
                    #expect(middle.codeCount - start.codeCount == end.codeCount - middle.codeCount)
                    #expect(middle.subjectCount - start.subjectCount == end.subjectCount - middle.subjectCount)
                    #expect(middle.mailCount - start.mailCount == 1 && end.mailCount - middle.mailCount == 1)
                    let due = isDelivered ? 1 : 0
                    #expect(middle.dueCount - start.dueCount == due && end.dueCount - middle.dueCount == due)
                    #expect(middle.wakeCount - start.wakeCount == 1 && end.wakeCount - middle.wakeCount == 1)
                    let difference = (middle.byteCount - start.byteCount) - (end.byteCount - middle.byteCount)
                    #expect(abs(difference) <= 64, "a uid and a mark, not more: \(difference)")
                }
            }
        }
    }

    @Test func whatWasWrittenForNobodyIsSentToNobody() async throws {
        let posted = Mutex<[String]>([])
        let webhook = FakeHTTPServer { request in
            posted.withLock { $0.append(String(decoding: request.body, as: UTF8.self)) }
            return .response(HTTPResponse(status: 204, body: []))
        }
        defer { webhook.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("known@x.com")
            try client.deliverByWebhook(url: webhook.url)
            for address in ["other@x.com", "known@x.com", "another@x.com"] as [Text] {
                try client.sendOob(.passwordReset, email: address)
            }
            try await until("no mail is due") {
                await server.project.mailer.deliverDue()
                return try server.project.store.read { try $0.count(Tables.outboxDue) } == 0
            }
            let bodies = posted.withLock { $0 }
            #expect(bodies.count == 1 && bodies.first?.contains("known@x.com") == true)
            #expect(try client.mails().map(\.message.to) == ["known@x.com"])
        }
    }
}
