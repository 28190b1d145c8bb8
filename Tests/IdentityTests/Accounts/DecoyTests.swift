import Base
import Crypto
import Messages
import Reactor
import Rules
import Store
import TestSupport
import Testing

@testable import Identity

/// The hashes that unknown addresses are taken to have: their costs have the mix of the tenant's own password hashes.
@Suite struct DecoyTests {
    private let standard: Text = "$argon2id$v=19$m=8,t=1,p=1"

    /// The costs that `count` unknown addresses get in a tenant whose users have these hashes: once they all are there,
    /// and again after each of `later`.
    private func costs(
        ofUnknown count: Int, amongUsersWith hashes: [Text], later: [Text]
    ) async throws -> [[Text]] {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            var found: [[Text]] = []
            let users = (hashes + later).enumerated().map { index, hash in
                var account = Account(user: User(tenantID: "acme", uid: Text("u\(index)")))
                account.passwordHash = hash
                return account
            }
            for round in 0...later.count {
                let added = round == 0 ? users[..<hashes.count] : users[(hashes.count + round - 1)...].prefix(1)
                try await fixture.store.write { transaction in
                    for account in added {
                        try transaction.insert(account, origin: .server, now: Timestamp(seconds: 1))
                    }
                }
                found.append(try costs(ofUnknown: count, in: fixture))
            }
            return found
        }
    }

    private func costs(ofUnknown count: Int, amongUsersWith hashes: [Text]) async throws -> [Text] {
        try await costs(ofUnknown: count, amongUsersWith: hashes, later: [])[0]
    }

    private func costs(ofUnknown count: Int, in fixture: Fixture) throws -> [Text] {
        let settings = try fixture.settings()
        let pool = WorkerPool(name: "hash", workers: 1, queueMax: 1, queueMaxPerTenant: 1)
        defer { end(pool) }
        let passwords = PasswordService(
            pool: pool, store: fixture.store, sealing: MasterKey.generate(random: .system).sealing,
            random: .system, profile: .cheap)
        return try fixture.store.read { transaction in
            try (0..<count).map { index in
                let email = try #require(Email(stored: Text("nobody\(index)@x.com")))
                let costs = try (0..<2).map { _ in
                    try passwords.decoy(for: email, settings: settings, in: transaction).cost
                }
                // Asking twice tells no more than asking once.
                #expect(costs[0] == costs[1])
                return costs[0]
            }
        }
    }

    private func bcrypt(_ cost: String) -> Text {
        Text("$2b$\(cost)$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")
    }

    @Test func aDecoyIsAsDearAsTheTenantsHashes() async throws {
        #expect(try await costs(ofUnknown: 3, amongUsersWith: []) == [standard, standard, standard])
        #expect(try await costs(ofUnknown: 2, amongUsersWith: [bcrypt("12")]) == ["$2b$12", "$2b$12"])
    }

    @Test func dearOnesAreAsFrequentAsAmongTheUsers() async throws {
        let hashes = Array(repeating: bcrypt("05"), count: 30) + Array(repeating: bcrypt("12"), count: 10)
        let found = try await costs(ofUnknown: 400, amongUsersWith: hashes)
        #expect(Set(found) == ["$2b$05", "$2b$12"])
        // 100 are expected; six standard deviations are 52.
        #expect((48...152).contains(found.count { $0 == "$2b$12" }))
    }

    /// Otherwise a stranger who signs up users would see by the time of the answers which addresses have no account.
    @Test func oneAddressKeepsItsCostWhileUsersCome() async throws {
        let hashes = Array(repeating: bcrypt("05"), count: 10) + Array(repeating: bcrypt("12"), count: 10)
        let found = try await costs(
            ofUnknown: 50, amongUsersWith: hashes, later: Array(repeating: bcrypt("05"), count: 20))
        for address in 0..<50 {
            let changes = zip(found, found.dropFirst()).count { $0[address] != $1[address] }
            #expect(changes <= 1, "nobody\(address)")
        }
        // A half of them were dear, and a quarter is.
        #expect(found[0].count { $0 == "$2b$12" } > found[20].count { $0 == "$2b$12" })
    }

    /// The memory that a check declares to its pool, in a tenant whose only user has a bcrypt hash.
    private func memoryDeclared(
        by check: @Sendable (PasswordService, PasswordTurn) async throws -> Void
    ) async throws -> Int {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            var account = Account(user: User(tenantID: "acme", uid: "u"))
            account.passwordHash = bcrypt("05")
            let (user, now) = (account, fixture.now)
            try await fixture.store.write { try $0.insert(user, origin: .server, now: now) }
            let pool = WorkerPool(name: "hash", workers: 1, queueMax: 1, queueMaxPerTenant: 1)
            defer { end(pool) }
            let passwords = PasswordService(
                pool: pool, store: fixture.store, sealing: MasterKey.generate(random: .system).sealing,
                random: .system, profile: .cheap)
            let turn = PasswordTurn(
                settings: try fixture.settings(), address: nil, origin: .server, deadline: .distantFuture)
            try await check(passwords, turn)
            return pool.counts.memoryPeakByteCount
        }
    }

    /// The new hash that a right password would get is declared, too. A full pool would otherwise tell by its refusals
    /// which addresses have an account.
    @Test func aDecoyDeclaresWhatACheckOfAnOutdatedHashDeclares() async throws {
        let email = try #require(Email(stored: "nobody@x.com"))
        let hash = bcrypt("05")
        let real = try await memoryDeclared { _ = try await $0.verify(Secret("x"), stored: hash, $1) }
        let decoy = try await memoryDeclared { try await $0.verifyDecoy(Secret("x"), email: email, $1) }
        #expect(real == decoy && real >= PasswordHashProfile.cheap.memoryKiB * 1_024)
    }

    @Test func aCostThatNobodyHasAnyMoreIsForgotten() async throws {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            var account = Account(user: User(tenantID: "acme", uid: "u"))
            account.passwordHash = bcrypt("12")
            let (old, now) = (account, fixture.now)
            try await fixture.store.write { try $0.insert(old, origin: .server, now: now) }
            #expect(try fixture.rows(Tables.passwordHashKinds).count == 1)
            try await fixture.store.write { try $0.remove(old, origin: .server, now: now) }
            #expect(try fixture.rows(Tables.passwordHashKinds).isEmpty)
        }
    }
}

/// Closing may block a test's thread for a moment.
private func end(_ pool: WorkerPool) { pool.close() }

extension Fixture {
    fileprivate func settings() throws -> TenantSettings {
        let record = try store.read { try $0.get(Tables.tenants, TenantPrefix("acme")) }
        return TenantSettings(try #require(record))
    }
}
