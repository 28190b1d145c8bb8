import Base
import Messages
import PosternAdmin
import PosternClient
import Service
import TestSupport
import Testing

/// The counts of what the toggles refuse.
@Suite(.timeLimit(.minutes(2))) struct DenialCountsTests {
    @Test func `All counts are asked for, however few the server tells at once`() async throws {
        try await withServer(configure: { $0.limits.pageSizeMax = 3 }) { server in
            let channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
            let tenant = ProjectAdmin(channel: channel).tenant("")
            _ = try await tenant.updateSettings(TenantSettingsChange { $0.disabledUserSignup = true })
            let start = server.clock.clock.now()
            for number in 0..<7 {
                if number > 0 { server.clock.advance(by: .hours(1)) }
                await expectRefusal("ADMIN_RESTRICTED_OPERATION") { () throws(Failure) in
                    _ = try await AccountsClient(channel: channel).signUp(
                        AccountsSignUpRequest(email: "eve@example.com", password: Secret("correct horse")))
                }
            }
            let counts = try await tenant.denialCounts()
            let hour = Duration.hours(1).microseconds
            let first = start.microseconds - start.microseconds % hour
            #expect(counts.map(\.count) == Array(repeating: 1, count: 7))
            let hours = counts.map { ($0.hourStartMicros - first) / hour }
            #expect(hours == [6, 5, 4, 3, 2, 1, 0])
            // Each hour that the range touches.
            let part = try await tenant.denialCounts(from: start + .hours(1), to: start + .seconds(5 * 3_600 - 60))
            let hoursOfPart = part.map { ($0.hourStartMicros - first) / hour }
            #expect(hoursOfPart == [4, 3, 2, 1])
            await channel.shutdown()
        }
    }
}
