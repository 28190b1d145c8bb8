import Base
import Crypto
import Messages
import Reactor
import Rules
import Store
import TestSupport
import Testing

@testable import Identity

@Suite struct PasswordServiceTests {
    /// Checking this hash takes some 200 ms; the password is tried in two forms, because NFC changes it.
    private let bcrypt: Text = "$2b$12$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
    private let password = Secret("cafe\u{301}s")

    private func hashCount(deadline: @Sendable () -> Instant) async throws -> (count: UInt64, reason: String) {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            let record = try fixture.store.read { try $0.get(Tables.tenants, TenantPrefix("acme")) }
            let settings = TenantSettings(try #require(record))
            let pool = WorkerPool(name: "hash", workers: 1, queueMax: 1, queueMaxPerTenant: 1)
            defer { end(pool) }
            let passwords = PasswordService(
                pool: pool, store: fixture.store, sealing: MasterKey.generate(random: .system).sealing,
                random: .system, profile: .cheap)
            var reason = ""
            do {
                let turn = PasswordTurn(settings: settings, address: nil, origin: .server, deadline: deadline())
                _ = try await passwords.verify(password, stored: bcrypt, turn)
            } catch let failure as Failure {
                reason = failure.reason
            }
            return (passwords.computed.all.reduce(0) { $0 + $1.count }, reason)
        }
    }

    @Test func allFormsOfAPasswordAreTriedInTime() async throws {
        let (count, reason) = try await hashCount { .distantFuture }
        #expect(count == 2 && reason.isEmpty)
    }

    /// The deadline passes during the first hash, or before it on a busy machine.
    @Test func noHashIsBegunAfterTheDeadline() async throws {
        let (count, reason) = try await hashCount { .now.advanced(by: .milliseconds(30)) }
        #expect(count <= 1 && reason == "DEADLINE_EXCEEDED")
    }
}

@Suite struct SignerKeyTests {
    /// Other keys are sealed with an id alone, too.
    @Test func `A signer key under an id that is not its own is refused`() async throws {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            let sealing = MasterKey.generate(random: .system).sealing
            let pool = WorkerPool(name: "hash", workers: 1, queueMax: 1, queueMaxPerTenant: 1)
            defer { end(pool) }
            let passwords = PasswordService(
                pool: pool, store: fixture.store, sealing: sealing, random: .system, profile: .cheap)
            let key = Secret("the old system's")
            let (id, record) = try passwords.signerKeyRecord(key)
            let otherID = Text("AAAAAAAAAAAAAAAAAAAAAA")
            let other = StoredHashSecret(sealed: try sealing.seal(key, context: otherID.bytes, random: .system))
            try await fixture.store.write { transaction in
                try transaction.put(Tables.hashSecrets, TenantHashKey("acme", id.bytes), record)
                try transaction.put(Tables.hashSecrets, TenantHashKey("acme", otherID.bytes), other)
            }
            let read = try passwords.signerKey(id, tenantID: "acme")
            #expect(read == key)
            #expect(throws: CryptoError.notAuthentic) { try passwords.signerKey(otherID, tenantID: "acme") }
        }
    }
}

/// Closing may block a test's thread for a moment.
private func end(_ pool: WorkerPool) { pool.close() }
