import Base
import Crypto
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
                _ = try await passwords.verify(password, stored: bcrypt, settings: settings, deadline: deadline())
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

/// Closing may block a test's thread for a moment.
private func end(_ pool: WorkerPool) { pool.close() }
