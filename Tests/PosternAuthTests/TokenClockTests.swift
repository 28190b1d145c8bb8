import Base
import JSON
import TestSupport
import Testing

@testable import PosternAuth

/// How long an ID token is taken to be valid, whatever the clocks say.
@Suite struct TokenClockTests {
    private static let start = Moment(monotonic: Instant(nanoseconds: 0), wall: Timestamp(seconds: 1_800_000_000))

    private func tokens(lifetime: Duration = .hours(1)) -> TokenSet {
        TokenSet(idToken: "i", refreshToken: "r", lifetime: lifetime, asked: Self.start)
    }

    @Test func `A token is good while more than five minutes remain`() {
        let minute: Int64 = 60_000_000_000
        #expect(tokens().isValid(at: Instant(nanoseconds: 55 * minute - 1)))
        #expect(!tokens().isValid(at: Instant(nanoseconds: 55 * minute)))
    }

    @Test func `A token made for less than ten minutes is good for half its life`() {
        let brief = tokens(lifetime: .minutes(4))
        #expect(brief.isValid(at: Instant(nanoseconds: 119_000_000_000)))
        #expect(!brief.isValid(at: Instant(nanoseconds: 120_000_000_000)))
    }

    @Test func `After a restart the wall clock tells the age; one that went back tells nothing`() {
        func restored(after passed: Duration) -> TokenSet {
            let now = Moment(monotonic: Instant(nanoseconds: 77), wall: Self.start.wall + passed)
            return TokenSet(
                idToken: "i", refreshToken: "r", lifetime: .hours(1), askedAt: Self.start.wall, now: now)
        }
        #expect(restored(after: .minutes(20)).remaining(at: Instant(nanoseconds: 77)) == .minutes(40))
        #expect(!restored(after: .seconds(-1)).isValid(at: Instant(nanoseconds: 77)))
        #expect(!restored(after: .days(400)).isValid(at: Instant(nanoseconds: 77)))
    }

    @Test(arguments: [Duration.hours(-1), .zero, .hours(1)])
    func `A wall clock that is wrong changes nothing`(_ clockError: Duration) async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let clock = application.clock(wrongBy: clockError)
            let auth = try application.auth(clock: clock, through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            for _ in 0..<3 {
                let token = try await user.idToken()
                clock.advance(by: .minutes(54))
                application.server.clock.advance(by: .minutes(54))
                #expect(try await user.idToken() == token)
                clock.advance(by: .minutes(1))
                application.server.clock.advance(by: .minutes(1))
                #expect(try await user.idToken() != token)
            }
            #expect(proxy.requestCount("Refresh") == 3)
            #expect(auth.currentUser === user)
            proxy.stop()
        }
    }

    @Test func `A wall clock that jumps while the application runs changes nothing`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let auth = try application.auth(clock: clock)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let token = try await user.idToken()
            clock.wall.advance(by: .hours(1))
            #expect(try await user.idToken() == token)
            clock.wall.step(by: .hours(-2))
            #expect(try await user.idToken() == token)
        }
    }

    @Test func `When a clock was set back during a restart, the server's refusal of the token brings a new one`()
        async throws
    {
        try await Application.run { application in
            let storage = InMemoryStorage()
            let clock = application.clock()
            let first = try application.auth(storage: storage, clock: clock)
            let token = try await first.createUser(withEmail: "ada@example.com", password: password).user.idToken()
            // Two hours pass, but only ten minutes on the client's clock.
            application.server.clock.advance(by: .hours(2))
            clock.wall.advance(by: .minutes(10))
            let auth = try application.auth(storage: storage, clock: clock)
            let user = try #require(auth.currentUser)
            #expect(try await user.idToken() == token)
            try await user.reload()
            #expect(try await user.idToken() != token)
            #expect(auth.currentUser === user)
        }
    }

    @Test func `What a token says is there as typed JSON`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let result = try await user.idTokenResult()
            let now = Timestamp(seconds: application.server.clock.clock.now().seconds)
            #expect(result.token == (try await user.idToken()))
            #expect(result.issuedAtDate == now && result.authDate == now)
            #expect(result.expirationDate == now + .hours(1))
            #expect(result.signInProvider == "password")
            #expect(result.signInSecondFactor == nil)
            #expect(result[claim: "email"]?.string == "ada@example.com")
            #expect(result[claim: "email_verified"]?.bool == false)
            #expect(result[claim: "no\0ne"] == nil)
        }
    }
}
