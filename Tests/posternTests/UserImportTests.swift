import Base
import JSON
import Messages
import TestSupport
import Testing

@testable import postern

/// postern user import against a server.
@Suite struct UserImportTests {
    /// A user with what an export has of many users: a password, three providers and an authenticator app.
    private static func user(_ number: Int) -> ImportUser {
        let email = Text("user\(number)@example.com")
        let phone = Text("+1415555\(String(number + 10_000).dropFirst())")
        var user = ImportUser(
            uid: Text("user-\(number)"), email: email, emailVerified: true, displayName: "User",
            photoURL: "https://example.com/photo", phoneNumber: phone)
        user.customClaimsJSON = [UInt8](#"{"plan":"gold"}"#.utf8)
        (user.createdAtMicros, user.lastSignInAtMicros, user.passwordUpdatedAtMicros) = (1, 2, 3)
        (user.passwordHash, user.salt) = (Secret([UInt8](repeating: 3, count: 64)), [0, 0, 0])
        user.hashSpec = "s"
        user.providers = [
            ProviderInfo(providerID: "password", rawID: email, email: email),
            ProviderInfo(
                providerID: "google.com", rawID: Text("\(number)"), email: email, displayName: "User",
                photoURL: "https://example.com/photo"),
            ProviderInfo(providerID: "phone", rawID: phone, phoneNumber: phone),
        ]
        let factor = SecondFactor(
            factorID: Text("factor-\(number)"), kind: .totp, displayName: "app", enrolledAtMicros: 4)
        let secret = Secret([UInt8](repeating: 5, count: 20))
        user.secondFactors = [ImportSecondFactor(factor: factor, totpSecret: secret)]
        return user
    }

    /// A user with an authenticator app, and without a password.
    private static func userWithFactor(_ number: Int) -> ImportUser {
        var factorUser = ImportUser(
            uid: Text("user-\(number)"), email: Text("user\(number)@example.com"), emailVerified: true)
        factorUser.secondFactors = user(number).secondFactors
        return factorUser
    }

    @Test func `Five hundred users with many fields come in, though no message could hold them`() async throws {
        let users = (0..<500).map(Self.user)
        let spec = FirebaseScryptSpec(
            signerKey: Secret([UInt8](repeating: 3, count: 64)), saltSeparator: [7], rounds: 8, memoryCost: 14)
        let named = NamedHashSpec(name: "s", spec: PasswordHashSpec(algorithm: .firebaseScrypt(spec)))
        let whole = UsersImportRequest(users: users, hashSpecs: [named]).encoded()
        #expect(throws: DecodeError.limit("fields")) { try UsersImportRequest(decoding: whole) }
        try await withServer { server in
            let file = "\(server.directory)/users.ndjson"
            writeFile(file, UserLines.line(named) + users.flatMap { UserLines.line($0) })
            let run = await TestConsole.run(["user", "import", file], on: server)
            #expect(run.code == .ok && run.written.contains("created 500"), "\(run.said)")
        }
    }

    /// The first password may come after any number of users without one.
    @Test func `Without --hash-algo nothing is sent, or the rows before the first password are told`() async throws {
        func file(_ plainCount: Int) -> [UInt8] {
            let plain = (0..<plainCount).map { #"{"localId":"u\#($0)"}"# }
            let rows = (plain + [#"{"localId":"last","passwordHash":"AAAA"}"#]).joined(separator: ",")
            return [UInt8](#"{"users":[\#(rows)]}"#.utf8)
        }
        try await withServer { server in
            let path = "\(server.directory)/users.json"
            func count() async -> String { await TestConsole.run(["user", "count", "-q"], on: server).written }
            writeFile(path, file(2))
            let early = await TestConsole.run(["user", "import", path], on: server)
            #expect(early.code == .usage && early.said.contains("with --hash-algo"), "\(early.said)")
            #expect(await count() == "0\n")
            writeFile(path, file(1_200))
            let late = await TestConsole.run(["user", "import", path], on: server)
            #expect(late.code == .general && late.said.contains("--on-conflict skip goes on"), "\(late.said)")
            #expect(await count() == "1200\n")
        }
    }

    @Test func `A row that no message can hold is rejected by its number, and the import goes on`() async throws {
        var large = ImportUser(uid: "large")
        large.providers = (0..<1_100).map { ProviderInfo(providerID: "oidc.p", rawID: Text("\($0)")) }
        let users = [ImportUser(uid: "ann"), large, ImportUser(uid: "bob"), large, ImportUser(uid: "carl")]
        try await withServer { server in
            let (file, rejects) = ("\(server.directory)/users.ndjson", "\(server.directory)/rejects")
            writeFile(file, users.flatMap { UserLines.line($0) })
            for trial in [["--dry-run"], []] {
                let words = ["user", "import", file, "--rejects", rejects] + trial
                let run = await TestConsole.run(words, on: server)
                #expect(run.code == .partial, "\(run.said)")
                #expect(run.written == "read 5, created 3, replaced 0, skipped 0, rejected 2\n", "\(run.said)")
                let text = try #require(readFile(rejects))
                let lines = try text.split(separator: 0x0A).map { try JSONValue(parsing: Array($0)) }
                let rows = lines.compactMap { $0["row"]?.integer }
                #expect(rows == [2, 4])
                let first = try #require(lines.first)
                #expect(first["uid"]?.string == "large" && first["reason"]?.string == "MESSAGE_LIMIT")
            }
        }
    }

    /// A trial says it too.
    @Test func `Users with second factors are told of where nobody is asked for one`() async throws {
        let words =
            "2 of the users have second factors, and tenant acme asks nobody for one: "
            + "postern tenant update acme --second-factors enabled switches them on\n"
        try await withServer { server in
            _ = await TestConsole.run(["tenant", "create", "acme"], on: server)
            let file = "\(server.directory)/users.ndjson"
            func bringIn(_ users: [ImportUser], _ more: [String] = []) async -> TestConsole.Outcome {
                writeFile(file, users.flatMap { UserLines.line($0) })
                return await TestConsole.run(["-t", "acme", "user", "import", file] + more, on: server)
            }
            let users = (0..<2).map { Self.userWithFactor($0) }
            let trial = await bringIn(users + [ImportUser(uid: "ann")], ["--dry-run"])
            #expect(trial.code == .ok && trial.said.contains(words), "\(trial)")
            let quiet = await bringIn(users, ["--dry-run", "-q"])
            #expect(quiet.code == .ok && !quiet.said.contains("second factors"), "\(quiet)")
            let done = await bringIn(users + [ImportUser(uid: "ann")])
            #expect(done.code == .ok && done.said.contains(words), "\(done)")
            let without = await bringIn([ImportUser(uid: "bob")])
            // The hint is about users that exist, and not about other rejected rows.
            let again = await bringIn([ImportUser(uid: "ann")])
            #expect(again.code == .partial && again.said.contains("\n--on-conflict skip leaves"), "\(again)")
            let wrong = await bringIn([ImportUser(uid: "carl", email: "no address")])
            #expect(wrong.code == .partial && !wrong.said.contains("--on-conflict"), "\(wrong)")
            #expect(without.code == .ok && !without.said.contains("second factors"), "\(without)")
            _ = await TestConsole.run(["tenant", "update", "acme", "--second-factors", "enabled"], on: server)
            let asking = await bringIn([Self.userWithFactor(3)])
            #expect(asking.code == .ok && !asking.said.contains("second factors"), "\(asking)")
        }
    }

    @Test func `The users of an export that was cut come in, and the command fails`() async throws {
        try await withServer { server in
            let file = "\(server.directory)/users.ndjson"
            let rows = ["ann", "bob"].flatMap { UserLines.line(ImportUser(uid: Text($0))) }
            writeFile(file, UserLines.header(tenantID: "acme") + rows)
            let run = await TestConsole.run(["user", "import", file], on: server)
            #expect(run.code == .general && run.said.contains("not complete"), "\(run.said)")
            #expect(run.said.contains("read 2, created 2,"), "\(run.said)")
            #expect(run.said.contains("import it with --on-conflict skip"), "\(run.said)")
        }
    }
}
