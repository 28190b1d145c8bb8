import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// What a deleted user leaves to the next user of its uid, table by table; tables that are declared later are covered,
/// too.
@Suite struct UserRemovalTests {
    private static let uid: Text = "a-user-that-goes"

    /// A key of the user, for each type of keys that has a uid.
    private static let keys: [String: [UInt8]] = [
        "UserKey": UserKey("", uid).bytes,
        "UserSessionKey": UserSessionKey("", uid, [7]).bytes,
        "UserTimeKey": UserTimeKey("", Timestamp(microseconds: 7), uid).bytes,
    ]

    /// The tables whose rows of a deleted user stay, and why.
    private static let staying: Set<String> = [
        // Verifiers refuse the user's tokens by these rows until the last token has expired.
        "revocations"
    ]

    /// The tables whose records alone name users: the scenario below makes a row in each.
    private static let naming: Set<String> = [
        "sessions", "user_by_email", "user_by_phone", "user_by_provider", "oob_codes",
    ]

    /// The tables whose records name users, but give nothing to the next user of the uid, and why.
    private static let harmless: Set<String> = [
        // A log of what was refused.
        "denials",
        // A repeated request gets its answer again for a day, if its caller is the same.
        "idempotency",
        // A sign-in ends when the account's tokens_valid_after_micros differs from the one in its record.
        "pending_sign_ins",
        // A code lives for minutes and takes the session_info, which only the former user's client has.
        "verification_codes",
    ]

    /// The tables that name no user, or only by a hash.
    private static let namingNobody: Set<String> = [
        "api_key_uses", "api_keys", "api_keys_of_tenants", "certificate_mappings", "denial_counts", "denial_heads",
        "email_configs", "guesses", "hash_secrets", "hook_configs", "idempotency_counts",
        "idempotency_counts_by_subject", "identity_issuers", "leases", "oob_code_by_subject", "outbox", "outbox_due",
        "password_hash_kinds", "providers", "revocation_tenants", "revocation_times", "service_account_keys",
        "service_accounts", "settings_changes", "signing_keys", "sms_budgets", "sms_configs", "spent_proofs", "tenants",
        "used_proofs", "used_token_ids",
    ]

    private static func source(_ name: String) throws -> String {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let bytes = try #require(readFile("/\(root)/Sources/Identity/Tables/\(name).swift"))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The name of each table that Tables.swift declares, with the name of its type of keys.
    private static func keyTypes() throws -> [String: String] {
        var types: [String: String] = [:]
        for text in try source("Tables").split(separator: " = Table<").dropFirst() {
            let parts = text.split(separator: "name: \"")
            guard parts.count > 1 else { continue }
            types[String(parts[1].prefix { $0 != "\"" })] = String(text.prefix { $0 != "," })
        }
        return types
    }

    /// The tables with a row that has the uid in its key or in its record.
    private static func tablesNamingTheUser(_ server: TestServer) throws -> Set<String> {
        let wanted = uid.bytes
        return try server.project.store.read { transaction in
            var names: Set<String> = []
            for table in Tables.all {
                try transaction.scan(table.asBytes) { row in
                    if try row.key.contains(wanted) || [UInt8](row.value).contains(wanted) {
                        names.insert(table.name.description)
                    }
                    return true
                }
            }
            return names
        }
    }

    @Test func `Each type of keys that has a uid is known here, and so are the keys of each table`() throws {
        for text in try Self.source("Keys").split(separator: "\npublic struct ").dropFirst() {
            guard text.contains("var uid: Text") else { continue }
            let type = String(text.prefix { $0 != ":" })
            #expect(Self.keys[type] != nil, "\(type): add a key of the user to `keys`")
        }
        let read = Set(try Self.keyTypes().keys)
        #expect(Set(Tables.all.map(\.name.description)).subtracting(read) == ["signing_keys"])
    }

    @Test func `Each table either has a row of the user here, or is known to need none`() throws {
        let types = try Self.keyTypes()
        let listed = Self.naming.union(Self.harmless).union(Self.namingNobody).union(Self.staying)
        for name in Tables.all.map(\.name.description) where Self.keys[types[name] ?? ""] == nil {
            #expect(listed.contains(name), "\(name): make a row of the user in it, or say why none is needed")
        }
        #expect(listed.subtracting(Tables.all.map(\.name.description)).isEmpty)
    }

    @Test func `A deleted user leaves no row in any table whose keys name users`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(
                    uid: Self.uid, email: "ann@example.com", password: Secret([UInt8]("correct horse".utf8)),
                    phoneNumber: "+14155550100"))
            let idToken = try #require(try client.signIn("ann@example.com").tokens).idToken
            try client.sendOob(.verifyEmail, idToken: idToken)
            _ = try client.signIn(.google(), linkingTo: idToken)

            // The server has made rows in some tables. The others get a row with an empty record, which is a message
            // of any type.
            let types = try Self.keyTypes()
            let made = try Self.tablesNamingTheUser(server)
            let ofUsers = Tables.all.filter { Self.keys[types[$0.name.description] ?? ""] != nil }
            #expect(made.isSuperset(of: ["users", "session_by_user", "user_by_creation"]))
            for name in Self.naming.subtracting(made) { Issue.record("\(name): no row of the user was made in it") }
            for name in made.intersection(Self.namingNobody) { Issue.record("\(name): it names the user after all") }
            try await server.project.store.write { transaction in
                for table in ofUsers where !made.contains(table.name.description) {
                    guard let key = Self.keys[types[table.name.description] ?? ""] else { continue }
                    try transaction.put(table.asBytes, key, [])
                }
            }
            let before = try Self.tablesNamingTheUser(server)
            #expect(before.isSuperset(of: ofUsers.map(\.name.description)))

            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: Self.uid))
            for name in try Self.tablesNamingTheUser(server).subtracting(Self.staying.union(Self.harmless)) {
                Issue.record("rows of a deleted user are left in \(name): see WriteTransaction.remove")
            }
        }
    }
}
