import Base
import Crypto
import Messages
import Rules
import Store
import Synchronization
import TestSupport
import Testing

@testable import Identity

@Suite struct CallerDirectoryTests {
    private let allTenants = Scope(tenants: .all(true))

    private func caller(_ authorization: [UInt8], _ directory: CallerDirectory, _ fixture: Fixture) throws -> Caller? {
        try fixture.store.read { transaction in
            try authorization.withUnsafeBytes { try directory.caller(authorization: $0, in: transaction) }
        }
    }

    private func bearer(_ secret: Secret) -> [UInt8] { utf8("Bearer ") + secret.withBytes { [UInt8]($0) } }

    private func create(
        _ directory: CallerDirectory, _ role: Role = .app, scope: Scope? = Scope(tenants: .all(true)),
        displayName: Text = "", validateOnly: Bool = false
    ) async throws -> (key: ApiKey, secret: Secret) {
        try await directory.create(
            WantedKey(role: role, scope: scope, displayName: displayName, trustsEndUserIP: role == .app),
            validateOnly: validateOnly, origin: .server)
    }

    @Test func aKeyIsRecognisedAsWhatItWasMadeFor() async throws {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            let directory = CallerDirectory(resources: fixture.resources)
            let mark = try fixture.store.read { $0.dated(Caller(ApiKey())) }
            let made = try await create(directory, .app, scope: Scope(tenants: .tenantID("acme")), displayName: "web")
            #expect(!directory.isCurrent(asOf: mark.asOf, directory.places(of: Caller(made.key), nil)))
            let caller = try #require(try caller(bearer(made.secret), directory, fixture))
            #expect(caller.id == made.key.apiKeyID && caller.role == .app && caller.tenantID == "acme")
            #expect(caller.trustsEndUserIP && made.key.displayName == "web")
            let rights = "role=app,scope=acme,display_name,trusted_end_user_ip=true"
            #expect(try fixture.events(of: "") == ["apiKeyCreated \(made.key.apiKeyID):\(rights)"])
        }
    }

    @Test func aKeyReadsAsDocumentedAndOnlyItsHashIsStored() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            let made = try await create(directory)
            let text = made.secret.withBytes { String(decoding: $0, as: UTF8.self) }
            let parts = text.split(separator: "_", maxSplits: 2)
            #expect(parts.count == 3 && parts[0] == "pk" && parts[1] == "\(made.key.apiKeyID)"[...])
            #expect(parts[1].count == 12 && parts[2].count == 43)
            let stored = try fixture.rows(Tables.apiKeys).values.flatMap { $0 }
            #expect(!String(decoding: stored, as: UTF8.self).contains(parts[2]))
            #expect(!"\(made.secret)".contains(parts[2]))
        }
    }

    @Test func noOtherBytesAreAKey() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            let right = bearer(try await create(directory).secret)
            let other = bearer(try await create(directory).secret)
            #expect(try caller(right, directory, fixture) != nil)
            for index in right.indices {
                for change: UInt8 in [1, 0x20, 0x80] {
                    var wrong = right
                    wrong[index] ^= change
                    // The scheme's name counts in any case (RFC 9110 §11.1).
                    if index < 6, change == 0x20 { continue }
                    #expect(try caller(wrong, directory, fixture) == nil, "byte \(index)")
                }
                #expect(try caller(Array(right[..<index]), directory, fixture) == nil, "\(index) bytes")
            }
            // The id of one key and the secret of the other.
            #expect(try caller(Array(right[..<23]) + Array(other[23...]), directory, fixture) == nil)
            let key = Array(right[7...])
            let wrongs: [[UInt8]] = [
                [], utf8("Bearer "), utf8("Bearer pk_"), key, utf8("Basic ") + key,
                utf8("Bearer  ") + key, right + [0], right + utf8(" "), right + utf8("\n"), right + right,
                utf8("Bearer pk_") + [UInt8](repeating: 0, count: 100), utf8("Bearer pk_") + [0xFF, 0xFE],
                right + [UInt8](repeating: UInt8(ascii: "A"), count: 1_000_000),
            ]
            for wrong in wrongs {
                #expect(try caller(wrong, directory, fixture) == nil)
            }
        }
    }

    @Test func rolesAndScopesAreChecked() async throws {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            let directory = CallerDirectory(resources: fixture.resources)
            let acme = Scope(tenants: .tenantID("acme"))
            let cases: [(Role, Scope?, String?)] = [
                (.unspecified, allTenants, "INVALID_ROLE"), (.any, allTenants, "INVALID_ROLE"),
                (.app, nil, "INVALID_SCOPE"), (.app, Scope(), "INVALID_SCOPE"),
                (.app, Scope(tenants: .all(false)), "INVALID_SCOPE"), (.projectAdmin, acme, "INVALID_SCOPE"),
                (.app, Scope(tenants: .tenantID("nobody")), "TENANT_NOT_FOUND"), (.verifier, acme, nil),
                (.app, allTenants, nil), (.tenantAdmin, acme, nil), (.projectAdmin, allTenants, nil),
            ]
            for (role, scope, expected) in cases {
                #expect(await refusal { _ = try await create(directory, role, scope: scope) } == expected)
            }
            #expect(
                await refusal { _ = try await create(directory, displayName: "\u{202E}") } == "INVALID_DISPLAY_NAME")
            #expect(try fixture.rows(Tables.apiKeys).count == 4)
        }
    }

    @Test func validatingOnlyMakesNoKey() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            let made = try await create(directory, validateOnly: true)
            #expect(try caller(bearer(made.secret), directory, fixture) == nil)
            #expect(try fixture.rows(Tables.apiKeys).isEmpty && fixture.events(of: "").isEmpty)
        }
    }

    @Test func aRevokedKeyIsRefusedAndStaysOnTheList() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            let made = try await create(directory)
            let id = made.key.apiKeyID
            _ = try await directory.revoke(id: id, validateOnly: true, origin: .server)
            #expect(try caller(bearer(made.secret), directory, fixture) != nil)
            let mark = try fixture.store.read { $0.dated(Caller(ApiKey())) }
            let revoked = try await directory.revoke(id: id, validateOnly: false, origin: .server)
            #expect(revoked.revokedAtMicros == fixture.now.microseconds)
            #expect(!directory.isCurrent(asOf: mark.asOf, directory.places(of: Caller(made.key), nil)))
            // Another key seldom has the same mark.
            let others = (0..<8).map { directory.places(of: Caller(ApiKey(apiKeyID: Text("key\($0)"))), nil) }
            #expect(others.contains { directory.isCurrent(asOf: mark.asOf, $0) })
            #expect(try caller(bearer(made.secret), directory, fixture) == nil)
            // Revoking the key again changes nothing.
            fixture.clock.advance(by: .seconds(9))
            #expect(try await directory.revoke(id: id, validateOnly: false, origin: .server) == revoked)
            let events = try fixture.events(of: "")
            #expect(events.count == 2 && events.last == "apiKeyRevoked \(id)")
            #expect(try fixture.store.read { try $0.apiKeys(after: nil, limit: 9) } == [revoked])
            let unknown = await refusal {
                _ = try await directory.revoke(id: "x", validateOnly: false, origin: .server)
            }
            #expect(unknown == "API_KEY_NOT_FOUND")
        }
    }

    @Test func theLastAdminKeyCannotBeRevoked() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            let first = try await create(directory, .projectAdmin)
            _ = try await create(directory, .tenantAdmin)
            func revoke(_ id: Text) async -> String? {
                await refusal { _ = try await directory.revoke(id: id, validateOnly: false, origin: .server) }
            }
            #expect(await revoke(first.key.apiKeyID) == "LAST_ADMIN_KEY")
            #expect(try caller(bearer(first.secret), directory, fixture) != nil)
            let second = try await create(directory, .projectAdmin)
            #expect(await revoke(first.key.apiKeyID) == nil)
            #expect(await revoke(second.key.apiKeyID) == "LAST_ADMIN_KEY")
        }
    }

    /// Keys that cannot be decoded, before and behind all others, show that the keys of tenants are not decoded.
    @Test func theOtherAdminKeyIsFoundAmongAnyKeys() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            try await fixture.store.write { transaction in
                for id in ["000000000000", "zzzzzzzzzzzz"] as [Text] {
                    try [UInt8]([0xFF]).withUnsafeBytes {
                        try transaction.put(Tables.apiKeys, TextKey(id), bytes: $0)
                    }
                }
            }
            for _ in 0..<20 { _ = try await create(directory) }
            func revoke(_ key: ApiKey, _ directory: CallerDirectory) async -> String? {
                await refusal {
                    _ = try await directory.revoke(id: key.apiKeyID, validateOnly: false, origin: .server)
                }
            }
            let first = try await create(directory, .projectAdmin).key
            let second = try await create(directory, .projectAdmin).key
            #expect(directory.adminKeys.ids == [second.apiKeyID, first.apiKeyID])
            #expect(await revoke(first, directory) == nil)
            #expect(await revoke(second, directory) == "LAST_ADMIN_KEY")
            #expect(directory.adminKeys.ids == [second.apiKeyID])
            // Another node knows nothing of the keys that were made here, and finds them all the same.
            let other = CallerDirectory(resources: fixture.resources)
            #expect(await revoke(second, other) == "LAST_ADMIN_KEY")
            let third = try await create(directory, .projectAdmin).key
            #expect(await revoke(second, other) == nil)
            // What this one still knows of the second key is out of date.
            #expect(directory.adminKeys.ids == [third.apiKeyID, second.apiKeyID])
            #expect(await revoke(third, directory) == "LAST_ADMIN_KEY")
        }
    }

    @Test func limitingAKeyTakesItFromTheKnownAdminKeys() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            var keys: [ApiKey] = []
            for _ in 0..<18 { keys.append(try await create(directory, .projectAdmin).key) }
            // So many are known, the newest first.
            #expect(directory.adminKeys.ids == Array(keys.map(\.apiKeyID).reversed().prefix(16)))
            func limit(_ key: ApiKey, to addresses: [Text], validateOnly: Bool = false) async throws {
                _ = try await directory.update(
                    id: key.apiKeyID, displayName: nil, quotas: nil,
                    restrictions: KeyRestrictions(allowedAddresses: addresses), validateOnly: validateOnly,
                    origin: .server)
            }
            try await limit(keys[17], to: ["192.0.2.0/24"], validateOnly: true)
            #expect(directory.adminKeys.ids.first == keys[17].apiKeyID)
            try await limit(keys[17], to: ["192.0.2.0/24"])
            #expect(directory.adminKeys.ids.first == keys[16].apiKeyID)
            try await limit(keys[17], to: [])
            #expect(directory.adminKeys.ids.first == keys[17].apiKeyID)
            // The first sweep after a start finds them again.
            let restarted = CallerDirectory(resources: fixture.resources)
            try await restarted.indexOldKeys()
            #expect(restarted.adminKeys.ids.count == 16)
        }
    }

    @Test func anEmptyStoreGetsOneAdminKeyOnce() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            let secret = try #require(try await directory.createFirstAdmin())
            let admin = try caller(bearer(secret), directory, fixture)
            #expect(admin?.role == .projectAdmin && admin?.tenantID == nil && admin?.trustsEndUserIP == false)
            #expect(try await directory.createFirstAdmin() == nil)
        }
    }

    /// Keeps a first admin key in memory: the key before it is shown, and after.
    private final class TestKeeper: SecretKeeper {
        private let state = Mutex<(unshown: Secret?, shown: Secret?)>((nil, nil))

        var shown: Secret? { state.withLock { $0.shown } }

        func keep(_ secret: Secret) { state.withLock { $0.unshown = secret } }
        func kept() -> Secret? { state.withLock { $0.unshown } }
        func show() { state.withLock { $0 = (nil, $0.unshown) } }
        func discard() { state.withLock { $0.unshown = nil } }
    }

    @Test func aFirstAdminKeyIsShownOnceTheStoreHasIt() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            let keeper = TestKeeper()
            let secret = try #require(try await directory.createFirstAdmin(keeper))
            #expect(keeper.shown.map(bearer) == bearer(secret) && keeper.kept() == nil)
            // One start was ended before it showed its key; the key of the other start never reached the store.
            let (ended, lost) = (TestKeeper(), TestKeeper())
            ended.keep(secret)
            lost.keep(Secret("pk_abcdefghijkl_0123456789012345678901234567890123456789012"))
            for keeper in [ended, lost] { #expect(try await directory.createFirstAdmin(keeper) == nil) }
            #expect(ended.shown.map(bearer) == bearer(secret) && ended.kept() == nil)
            #expect(lost.shown == nil && lost.kept() == nil)
        }
    }

    /// The other node commits between this node's look at the store and its write.
    @Test func aNodeThatComesSecondShowsNoAdminKey() async throws {
        let others = StoredApiKey(apiKey: ApiKey(apiKeyID: "other", role: .projectAdmin), secretHash: [1])
        let open: (String) throws -> Store = { directory in
            try openTestStore(at: directory, tables: Tables.all) { configuration in
                configuration.beforeRerun = { transaction throws(StoreError) in
                    try transaction.put(Tables.apiKeys, TextKey("other"), others)
                }
            }
        }
        try await withFixture(open: open) { fixture in
            let keeper = TestKeeper()
            let directory = CallerDirectory(resources: fixture.resources)
            let secret = try await directory.createFirstAdmin(keeper)
            #expect(secret == nil && keeper.shown == nil && keeper.kept() == nil)
            let keyCount = try fixture.store.read { try $0.count(Tables.apiKeys) }
            #expect(keyCount == 1)
        }
    }

    @Test func listsComeInPagesOrderedByID() async throws {
        try await withFixture { fixture in
            let directory = CallerDirectory(resources: fixture.resources)
            for _ in 0..<5 { _ = try await create(directory) }
            try fixture.store.read { transaction in
                let all = try transaction.apiKeys(after: nil, limit: .max)
                #expect(all.count == 5 && all.map(\.apiKeyID) == all.map(\.apiKeyID).sorted())
                #expect(try transaction.apiKeys(after: nil, limit: 2) == Array(all[..<2]))
                #expect(try transaction.apiKeys(after: all[1].apiKeyID, limit: 2) == Array(all[2..<4]))
                #expect(try transaction.apiKeys(after: all[4].apiKeyID, limit: 2).isEmpty)
            }
        }
    }
}
