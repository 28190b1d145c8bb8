import Base
import Messages
import Rules
import Store
import TestSupport
import Testing

@testable import Identity

@Suite struct TenantDirectoryTests {
    private func settings(
        _ tenantID: Text, in directory: TenantDirectory, _ fixture: Fixture
    ) throws -> TenantSettings {
        try fixture.store.read { try directory.settings(of: tenantID, in: $0) }
    }

    private func dated(
        _ tenantID: Text, in directory: TenantDirectory, _ fixture: Fixture
    ) throws -> Dated<TenantSettings> {
        try fixture.store.read { try directory.datedSettings(of: tenantID, in: $0) }
    }

    private func create(
        _ tenantID: Text, in directory: TenantDirectory, validateOnly: Bool = false, displayName: Text = ""
    ) async throws {
        var wanted = Messages.Tenant()
        wanted.displayName = displayName
        _ = try await directory.create(
            tenantID: tenantID, change: TenantChange(wanted, paths: ["display_name"]), isSynthetic: false,
            validateOnly: validateOnly, origin: .server)
    }

    private func disableAuth(
        _ settings: TenantSettings, in directory: TenantDirectory
    ) async throws -> Messages.Tenant {
        var wanted = Messages.Tenant()
        wanted.disableAuth = true
        let change = try TenantChange(wanted, paths: ["disable_auth"])
        return try await directory.tenant(settings.tenantID).update(change, validateOnly: false, origin: .server)
    }

    private func delete(_ tenantID: Text, in directory: TenantDirectory) async throws {
        try await directory.tenant(tenantID).delete(validateOnly: false, origin: .server)
    }

    private func list(_ directory: TenantDirectory, _ fixture: Fixture) throws -> [Text] {
        try fixture.store.read { try directory.list(after: nil, limit: 100, in: $0).map(\.tenantID) }
    }

    // MARK: Coming into being

    @Test func theDefaultPoolIsMadeOnce() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            try await directory.start()
            try await directory.start()
            try await fixture.tenantDirectory().start()
            #expect(try settings("", in: directory, fixture).allowsPasswordSignup)
            #expect(try fixture.events(of: "") == ["tenantCreated"])
            #expect(try list(directory, fixture) == [""])
        }
    }

    @Test func aNewTenantIsThereWithItsSettings() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            try await directory.start()
            let other = try dated("", in: directory, fixture)
            #expect(await refusal { _ = try settings("acme", in: directory, fixture) } == "TENANT_NOT_FOUND")
            #expect(directory.isCurrent(asOf: other.asOf))
            try await create("acme", in: directory, displayName: "Acme")
            #expect(!directory.isCurrent(asOf: other.asOf))
            let made = try settings("acme", in: directory, fixture)
            #expect(made.tenant.displayName == "Acme" && made.revision == 1 && !made.isAuthDisabled)
            #expect(made.secret.byteCount == 32)
            #expect(try fixture.events(of: "acme") == ["tenantCreated"])
        }
    }

    @Test func anIDIsCheckedAndUsedOnce() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            #expect(await refusal { try await create("Acme", in: directory) } == "INVALID_TENANT_ID")
            try await create("acme", in: directory)
            #expect(await refusal { try await create("acme", in: directory) } == "TENANT_ID_EXISTS")
            try await delete("acme", in: directory)
            #expect(await refusal { try await create("acme", in: directory) } == "TENANT_ID_EXISTS")
            // The directory makes up an id if none is given.
            try await create("", in: directory)
            let made = try #require(try list(directory, fixture).first)
            #expect(made.byteCount == 20 && reason { try Values.checkTenantID(made) } == nil)
        }
    }

    @Test func validatingOnlyWritesNothing() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            try await create("acme", in: directory, validateOnly: true)
            #expect(try list(directory, fixture).isEmpty)
            #expect(await refusal { _ = try settings("acme", in: directory, fixture) } == "TENANT_NOT_FOUND")
            try await create("acme", in: directory)
            #expect(await refusal { try await create("acme", in: directory, validateOnly: true) } == "TENANT_ID_EXISTS")
            try await directory.tenant("acme").delete(validateOnly: true, origin: .server)
            #expect(try list(directory, fixture) == ["acme"])
        }
    }

    // MARK: Changes

    @Test func aChangeIsSeenByTheNextReadOnAnySnapshot() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            try await create("acme", in: directory)
            let dated = try dated("acme", in: directory, fixture)
            let before = dated.value
            fixture.clock.advance(by: .seconds(1))
            let after = try await disableAuth(before, in: directory)
            #expect(after.disableAuth && after.revision == 2)
            #expect(after.updatedAtMicros == fixture.now.microseconds)
            #expect(!directory.isCurrent(asOf: dated.asOf))
            #expect(try settings("acme", in: directory, fixture).tenant == after)
            #expect(!before.isAuthDisabled, "a snapshot stays what it was")
            #expect(try fixture.events(of: "acme") == ["tenantCreated", "tenantUpdated disable_auth"])
            // A restarted process reads the same.
            #expect(try settings("acme", in: fixture.tenantDirectory(), fixture).isAuthDisabled)
        }
    }

    @Test func changesAtOneMomentStillHaveTheirOrder() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            try await create("acme", in: directory)
            let before = try settings("acme", in: directory, fixture)
            let first = try await disableAuth(before, in: directory)
            let allowAnonymous = try TenantChange(
                Messages.Tenant(enableAnonymousUser: true), paths: ["enable_anonymous_user"])
            let second = try await directory.tenant("acme").update(
                allowAnonymous, validateOnly: false, origin: .server)
            #expect(second.revision == 3 && second.updatedAtMicros > first.updatedAtMicros)
        }
    }

    @Test func aTenantHasOneOwner() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            #expect(directory.tenant("acme") === directory.tenant("acme"))
            #expect(directory.tenant("acme") !== directory.tenant("other"))
        }
    }

    // MARK: Deleting

    @Test func aDeletedTenantIsNotFoundByAnybody() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            try await create("acme", in: directory)
            let dated = try dated("acme", in: directory, fixture)
            let before = dated.value
            try await delete("acme", in: directory)
            #expect(!directory.isCurrent(asOf: dated.asOf))
            #expect(await refusal { _ = try settings("acme", in: directory, fixture) } == "TENANT_NOT_FOUND")
            #expect(
                await refusal { _ = try settings("acme", in: fixture.tenantDirectory(), fixture) } == "TENANT_NOT_FOUND"
            )
            #expect(await refusal { _ = try await disableAuth(before, in: directory) } == "TENANT_NOT_FOUND")
            #expect(await refusal { try await delete("acme", in: directory) } == "TENANT_NOT_FOUND")
            #expect(try list(directory, fixture).isEmpty)
            #expect(try fixture.events(of: "acme").isEmpty)
            #expect(try fixture.events(of: "").last == "tenantDeleted acme")
        }
    }

    @Test func theDefaultPoolStays() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            try await directory.start()
            #expect(await refusal { try await delete("", in: directory) } == "INVALID_TENANT_ID")
        }
    }

    /// Puts rows of three tenants, one id a prefix of another; 600 users make the purge take more than one slice.
    private func populate(_ fixture: Fixture, _ directory: TenantDirectory) async throws {
        try await directory.start()
        let now = fixture.now
        for (tenantID, count) in [("acme", 600), ("acme-2", 3), ("", 3)] as [(Text, Int)] {
            if !tenantID.isEmpty { try await create(tenantID, in: directory) }
            try await fixture.store.write { transaction in
                for number in 0..<count {
                    let uid = Text("u\(number)")
                    let account = account(
                        uid, tenantID: tenantID, email: Text("\(uid)@b.c"),
                        phoneNumber: Text("+1415555\(1_000 + number)"),
                        providers: [ProviderInfo(providerID: "google.com", rawID: uid)])
                    try transaction.insert(account, origin: .server, now: now)
                    let session = StoredSession(tenantID: tenantID, uid: uid, createdAtMicros: now.microseconds)
                    var id = [UInt8](repeating: UInt8(tenantID.byteCount), count: 16)
                    id.replaceSubrange(0..<2, with: [UInt8(number >> 8), UInt8(number & 255)])
                    try transaction.insertSession(session, id: id, sessionsMax: 9, settings: tenantSettings(), now: now)
                }
                let denial = Denial(timeMicros: now.microseconds, toggle: .disabledUserSignup, operation: "SignUp")
                try transaction.appendDenials(
                    [denial], tenantID: tenantID, limits: Limits(), deletesOldCounts: true)
                try transaction.put(Tables.hashSecrets, TenantHashKey(tenantID, [1]), StoredHashSecret(sealed: [1]))
            }
        }
    }

    private func rowCounts(_ fixture: Fixture) throws -> [Int] {
        [
            try fixture.rows(Tables.users).count, try fixture.rows(Tables.userByEmail).count,
            try fixture.rows(Tables.userByPhone).count, try fixture.rows(Tables.userByProvider).count,
            try fixture.rows(Tables.sessions).count, try fixture.rows(Tables.sessionByUser).count,
            try fixture.rows(Tables.denials).count, try fixture.rows(Tables.denialHeads).count,
            try fixture.rows(Tables.denialCounts).count, try fixture.rows(Tables.hashSecrets).count,
        ]
    }

    @Test func deletingRemovesEveryRowOfTheTenantAndNoOther() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            try await populate(fixture, directory)
            #expect(try rowCounts(fixture) == [606, 606, 606, 606, 606, 606, 3, 3, 3, 3])
            try await delete("acme", in: directory)
            #expect(try rowCounts(fixture) == [6, 6, 6, 6, 6, 6, 2, 2, 2, 2])
            #expect(try list(directory, fixture) == ["", "acme-2"])
            let record = try fixture.store.read { try $0.get(Tables.tenants, TenantPrefix("acme")) }
            #expect(record?.deleted == true && record?.purged == true && record?.secret == [])
        }
    }

    @Test(arguments: [false, true])
    func aDeletionThatWasInterruptedIsFinishedByTheFirstSweepAfterAStartOrALaterOne(isStarted: Bool) async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            try await populate(fixture, directory)
            try await fixture.store.write { transaction in
                var record = try transaction.reading.liveTenant("acme")
                record.deleted = true
                try transaction.put(Tables.tenants, TenantPrefix("acme"), record)
            }
            let swept = isStarted ? fixture.tenantDirectory() : directory
            if isStarted { try await swept.start() }
            try await swept.finishSomeDeletions()
            #expect(try rowCounts(fixture) == [6, 6, 6, 6, 6, 6, 2, 2, 2, 2])
            try await directory.finishSomeDeletions()
        }
    }

    @Test func theSweepComesRoundToEveryDeletionThatWasInterrupted() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            let deleted: [Text] = ["t0000", "t2500", "t5500"]
            try await fixture.store.write { transaction in
                for number in 0..<6_000 {
                    let digits = String(10_000 + number).dropFirst()
                    let tenantID = Text("t\(digits)")
                    let tenant = TenantSettings.defaults(tenantID: tenantID, now: .zero)
                    let record = StoredTenant(tenant: tenant, deleted: deleted.contains(tenantID))
                    try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
                }
            }
            func unfinished() throws -> [Text] {
                try fixture.store.read { transaction in
                    try deleted.filter { try transaction.get(Tables.tenants, TenantPrefix($0))?.purged == false }
                }
            }
            let restarted = fixture.tenantDirectory()
            try await directory.finishSomeDeletions()
            #expect(try unfinished() == ["t5500"])
            try await directory.finishSomeDeletions()
            #expect(try unfinished().isEmpty)
            // The first sweep after a start looks at all deleted tenants.
            try await fixture.store.write { transaction in
                for tenantID in deleted {
                    var record = try #require(try transaction.reading.get(Tables.tenants, TenantPrefix(tenantID)))
                    record.purged = false
                    try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
                }
            }
            try await restarted.start()
            try await restarted.finishSomeDeletions()
            #expect(try unfinished().isEmpty)
        }
    }

    @Test func listsComeInPagesOrderedByID() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            for tenantID: Text in ["cccc", "aaaa", "bbbb", "dddd"] { try await create(tenantID, in: directory) }
            try await delete("bbbb", in: directory)
            func page(_ after: Text?, _ limit: Int) throws -> [Text] {
                try fixture.store.read { try directory.list(after: after, limit: limit, in: $0).map(\.tenantID) }
            }
            #expect(try page(nil, 2) == ["aaaa", "cccc"])
            #expect(try page("cccc", 2) == ["dddd"])
            #expect(try page("bbbb", 9) == ["cccc", "dddd"])
            #expect(try page("dddd", 9).isEmpty)
        }
    }
}
