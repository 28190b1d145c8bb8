import Base
import Messages
import Rules
import Store
import TestSupport
import Testing

@testable import Identity

/// How long the owners of tenants stay in memory.
@Suite struct TenantOwnersTests {
    private static let settings = tenantSettings()

    private static func send(_ directory: TenantDirectory) async -> String? {
        await refusal {
            try await directory.tenant("acme").admitSend(
                email: Email(stored: "ada@acme.example")!, askedBy: .anybody(.passwordReset), address: nil,
                settings: settings)
        }
    }

    @Test func `Owners that nobody uses go while others come`() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            for number in 0..<1_000 { _ = directory.tenant(Text("tenant-\(number)")) }
            #expect(directory.ownerCount <= 3)
            directory.forgetIdle()
            #expect(directory.ownerCount == 0)
        }
    }

    @Test func `An owner that is used stays the only one`() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            let used = directory.tenant("acme")
            for number in 0..<10 { _ = directory.tenant(Text("tenant-\(number)")) }
            directory.forgetIdle()
            #expect(directory.ownerCount == 1 && directory.tenant("acme") === used)
        }
    }

    @Test func `An owner stays while its hour of mails counts`() async throws {
        try await withFixture { fixture in
            let directory = fixture.tenantDirectory()
            for _ in 0..<fixture.resources.limits.sendsPerMailboxAndHour {
                #expect(await Self.send(directory) == nil)
            }
            fixture.clock.advance(by: .minutes(12) - .seconds(1))
            directory.forgetIdle()
            #expect(await Self.send(directory) == "TOO_MANY_ATTEMPTS_TRY_LATER")
            fixture.clock.advance(by: .minutes(48) + .seconds(1))
            directory.forgetIdle()
            #expect(directory.ownerCount == 0)
            #expect(await Self.send(directory) == nil)
        }
    }

    @Test func `An owner stays while refusals are counted and not written`() async throws {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            let directory = fixture.tenantDirectory()
            let denial = Denial(toggle: .disabledUserSignup, operation: "test")
            for _ in 0...fixture.resources.limits.denialsRecordedPerSecond {
                await directory.tenant("acme").record(denial)
            }
            fixture.clock.advance(by: .hours(2))
            directory.forgetIdle()
            #expect(directory.ownerCount == 1)
            await directory.tenant("acme").flushSuppressed()
            // After these two calls, everything that the owner's loop and the writer had in their queues is done.
            _ = await directory.tenant("acme").anonymousSignUpCount()
            try await fixture.store.write { _ in }
            let written = try fixture.store.read { try $0.denials(tenantID: "acme", after: 0, limit: 1_000) }
            #expect(written.contains { $0.suppressedCount == 1 })
            #expect(directory.tenant("acme").isIdle(at: fixture.resources.steadyClock.now()))
        }
    }
}
