import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing

/// Every field of a stored user survives an export and an import into another tenant, or is named here with the reason
/// why it does not. Secrets of authenticator apps are in `ExportTests`.
@Suite struct ExportedFieldsTests {
    private static let reasonsOfLost = [
        "tenantID": "the user is in another tenant",
        "lastRefreshAtMicros": "no record holds it: the user's sessions tell it",
        "tokensValidAfterMicros": "tokens from before the import belong to another account",
        "recoveryCodeCount": "the store has only MACs of recovery codes, under a key of the project",
        "importedAtMicros": "it is the time of the last import",
        "tokensRevokedFor": "nobody has revoked tokens of the new account",
        "knownAddresses": "they are hashes, and an import does not vouch for addresses",
    ]

    private static let google = ProviderInfo(
        providerID: "google.com", rawID: "g-1", email: "ann@gmail.com", displayName: "Ann",
        photoURL: "https://example.com/g.png", phoneNumber: "+14155550103", issuer: "https://accounts.google.com")
    private static let phone = SecondFactor(
        factorID: "f1", kind: .phone, displayName: "work", phoneNumber: "+14155550102", enrolledAtMicros: 4)

    /// A user of a back end with everything that there is.
    private static func ann() throws -> StoredUser {
        var user = User(tenantID: "acme", uid: "ann", email: "Ann@example.com", emailVerified: true, displayName: "Ann")
        (user.photoURL, user.phoneNumber, user.disabled) = ("https://example.com/a.png", "+14155550101", true)
        (user.providers, user.customClaimsJSON) = ([google], [UInt8](#"{"role":"editor"}"#.utf8))
        (user.createdAtMicros, user.lastSignInAtMicros, user.lastRefreshAtMicros) = (1_001, 2_002, 2_003)
        (user.tokensValidAfterMicros, user.secondFactors, user.recoveryCodeCount) = (3_003, [phone], 3)
        let stored = StoredUser(
            user: user.encoded(), passwordHash: "$2b$10$vI8aWBnW3fID.ZQ4/zo1G.q1lRps.9cGLcZEiGDMVr5yUP1KUOYTa",
            passwordUpdatedAtMicros: 4_004, emailLinkSignIn: true, customTokenSignIn: true, importedAtMicros: 5_005,
            tokensRevokedFor: .admin, knownAddresses: [1, 2, 3, 4, 5, 6, 7, 8])
        var account = try Account(stored)
        account.deriveProviders()
        return account.record
    }

    /// A user with an email that nobody proved.
    private static func unproved(_ uid: Text, isSetByAdmin: Bool) -> StoredUser {
        let user = User(tenantID: "acme", uid: uid, email: Text("\(uid)@example.com"), createdAtMicros: 1)
        return StoredUser(user: user.encoded(), emailSetByAdmin: isSetByAdmin)
    }

    /// The fields of a record and of the user in it, by their names.
    private static func fields(_ record: StoredUser) throws -> [String: String] {
        let values: [Any] = [record, try User(decoding: record.user)]
        var fields: [String: String] = [:]
        for child in values.flatMap({ Mirror(reflecting: $0).children }) where child.label != "user" {
            fields[child.label ?? ""] = String(reflecting: child.value)
        }
        return fields
    }

    /// The names of fields that are as in an empty message.
    private static func emptyFields(_ value: Any, of empty: Any) -> [String] {
        zip(Mirror(reflecting: value).children, Mirror(reflecting: empty).children).compactMap { field, other in
            String(reflecting: field.value) == String(reflecting: other.value) ? field.label : nil
        }
    }

    /// Stores the users, exports them, imports them into another tenant, and returns their records there.
    private static func copies(of records: [Text: StoredUser]) async throws -> [Text: StoredUser] {
        try await withServer { server in
            for tenantID in ["acme", "copy"] as [Text] {
                let _: TenantsCreateResponse = try server.connect().call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
            }
            try await server.project.store.write { transaction in
                for (uid, record) in records { try transaction.put(Tables.users, UserKey("acme", uid), record) }
            }
            let exported = try ExportTests.export(
                server, UsersExportRequest(tenantID: "acme", includePasswordHashes: true),
                key: try ExportTests.exporter(server))
            let answer = try ExportTests.importAll(
                server, exported.flatMap(\.users), exported.flatMap(\.hashSpecs), tenantID: "copy")
            #expect(answer.rejections.isEmpty, "\(answer.rejections)")
            return try server.project.store.read { transaction in
                var copies: [Text: StoredUser] = [:]
                for uid in records.keys { copies[uid] = try transaction.get(Tables.users, UserKey("copy", uid)) }
                return copies
            }
        }
    }

    @Test func `Each field of a user survives an export and an import, or has a reason`() async throws {
        #expect(Self.emptyFields(Self.google, of: ProviderInfo()).isEmpty)
        #expect(Self.emptyFields(Self.phone, of: SecondFactor()).isEmpty)
        let records =
            [
                "ann": try Self.ann(), "bob": Self.unproved("bob", isSetByAdmin: true),
                "carl": Self.unproved("carl", isSetByAdmin: false),
            ] as [Text: StoredUser]
        let copies = try await Self.copies(of: records)
        let empty = try Self.fields(StoredUser())
        var tested: Set<String> = []
        for (uid, record) in records {
            let (before, after) = (try Self.fields(record), try Self.fields(try #require(copies[uid])))
            for (name, value) in before {
                let isLost = Self.reasonsOfLost[name] != nil
                if value != empty[name] { tested.insert(name) }
                // A field that is lost may be empty before.
                if isLost, value == empty[name] { continue }
                #expect((after[name] != value) == isLost, "\(name) of \(uid): \(value), \(after[name] ?? "")")
            }
        }
        #expect(Set(empty.keys).subtracting(tested).isEmpty, "fields that no user here has")
    }
}
