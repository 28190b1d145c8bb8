import Base
import Glibc
import Identity
import Messages
import Service
import TestSupport
import Testing
import Wire

/// An attacker guesses from ever new addresses at ever new accounts: only the budgets of tenants and credentials
/// notice that. They refuse nobody, but a caller without a known address or device waits behind the others.
@Suite struct WaitingAttackTests {
    private static func spray(_ guesser: Guesser, _ range: Range<Int>) -> Set<String> {
        Set(
            range.map { number in
                guesser.tryPassword(
                    "x", of: Text("user\(number)@example.com"), from: Text("198.18.\(number / 250).\(number % 250)")
                ).reason
            })
    }

    private static func configure(_ waitMax: Duration) -> @Sendable (inout Instance.Configuration) -> Void {
        { configuration in
            configuration.limits.guessesPerTenantAndHour = 20
            configuration.limits.strangerWaitMax = waitMax
            configuration.limits.strangersWaitingPerTenantMax = 3
        }
    }

    /// Sends a sign-in without waiting for its answer.
    private static func send(_ client: RawClient, _ email: Text, _ tenantID: Text = .empty) throws {
        let request = AccountsSignInWithPasswordRequest(tenantID: tenantID, email: email, password: Secret("x"))
        try client.send(
            client.request("postern.v1.Accounts/SignInWithPassword", request, stream: client.nextStream()))
    }

    @Test func `A budget of a tenant that is spent refuses nobody`() async throws {
        try await withServer(configure: Self.configure(.milliseconds(1))) { server in
            let guesser = try Guesser(server)
            #expect(Self.spray(guesser, 0..<20) == [wrongCredentials])
            #expect(server.project.guesses.counters.delayed.value == 0)
            #expect(Self.spray(guesser, 20..<100) == [wrongCredentials])
            #expect(server.project.guesses.counters.delayed.value == 80)
        }
    }

    @Test func `Strangers wait while known devices, known addresses and other tenants do not`() async throws {
        try await withServer(configure: Self.configure(.seconds(600))) { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "other"))
            let guesser = try Guesser(server)
            let device = try guesser.signIn("ada@example.com", from: "192.0.2.1").deviceToken
            _ = Self.spray(guesser, 0..<20)
            let strangers = try Guesser(server)
            _ = strangers.tryPassword("x", of: "bob@example.com", tenantID: "other")
            let counters = server.project.guesses.counters
            for number in 0..<3 {
                try Self.send(strangers.client, Text("user\(number)@example.com"))
            }
            try await until("three wait") { counters.waiting.value == 3 }

            _ = try guesser.signIn("ada@example.com", from: "192.0.2.1")
            _ = try guesser.signIn("ada@example.com", from: "203.0.113.77", deviceToken: device)
            #expect(guesser.tryPassword("x", of: "bob@example.com", tenantID: "other").reason == wrongCredentials)
            // No more than three of this tenant wait at a time.
            let turnedAway = guesser.tryPassword("x", of: "carol@example.com")
            #expect(turnedAway.reason == "SERVER_OVERLOADED" && turnedAway.retryAfter != nil)
            #expect(counters.waiting.value == 3 && counters.waitingRefused.value == 1)

            // A caller that goes away makes room, and a password that was never tried costs nothing.
            strangers.client.reset()
            try await until("none waits") { counters.waiting.value == 0 }
        }
    }

    @Test func `Tenants that fill the waiting room leave room for another tenant's strangers`() async throws {
        try await withServer(configure: { configuration in
            configuration.limits.guessesPerTenantAndHour = 20
            configuration.limits.strangerWaitMax = .seconds(600)
            configuration.limits.strangersWaitingMax = 4
            configuration.limits.strangersWaitingPerTenantMax = 4
        }) { server in
            let admin = try server.connect()
            let _: TenantsCreateResponse = try admin.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "other"))
            let guesser = try Guesser(server)
            _ = Self.spray(guesser, 0..<20)
            for number in 0..<20 {
                _ = guesser.tryPassword(
                    "x", of: Text("user\(number)@example.com"), from: Text("198.19.0.\(number)"), tenantID: "other")
            }
            let counters = server.project.guesses.counters
            let attackers = try Guesser(server)
            for number in 0..<4 { try Self.send(attackers.client, Text("user\(number)@example.com")) }
            try await until("four wait") { counters.waiting.value == 4 }
            let other = try Guesser(server)
            for number in 0..<2 { try Self.send(other.client, Text("user\(number)@example.com"), "other") }
            // Two of the first tenant's give way, the latest first.
            for _ in 0..<2 {
                let frame = try attackers.client.readFrame()
                #expect(
                    failure {
                        let _: AccountsSignInWithPasswordResponse = try RawClient.response(frame)
                    }.reason == "SERVER_OVERLOADED")
            }
            try await until("two of the four are the other tenant's") {
                counters.waiting.value == 4 && counters.waitingRefused.value == 2
            }
            // Neither tenant takes more from the other.
            for tenantID in ["", "other"] as [Text] {
                let refused = guesser.tryPassword("x", of: "carol@example.com", tenantID: tenantID)
                #expect(refused.reason == "SERVER_OVERLOADED")
            }
        }
    }
}
