import Base
import Crypto
import Identity
import Messages
import Reactor
import TestSupport
import Testing

@testable import Service

/// A stranger with a tenant's app key keeps the tenant's places for password hashes full, from one address.
@Suite struct OneAddressAttackTests {
    /// Sends a sign-up of a new user, and waits for nothing.
    private static func sendSignUp(_ stranger: Guesser, _ number: Int) throws {
        let request = AccountsSignUpRequest(
            email: Text("stranger\(number)@example.com"), password: Secret("a password"))
        let client = stranger.client
        try client.send(
            client.request(
                "postern.v1.Accounts/SignUp", request, stream: client.nextStream(),
                timeoutNanoseconds: 60_000_000_000))
    }

    /// A sign-in from another address waits for two of the stranger's hashes at most, and for the one under way. If it
    /// stood behind those that wait, or found no place, it would be refused or wait for all of them.
    @Test func aFloodOfSignUpsDelaysItsOwnAddressOnly() async throws {
        let profile = try PasswordHashProfile(memoryKiB: 65_536, passes: 2)
        try await withServer(configure: {
            $0.passwordWorkers = 1
            $0.project.passwordProfile = profile
        }) { server in
            _ = try IdentityClient(server).signUp("ada@example.com")
            let stranger = try Guesser(server, isTrusted: false)
            let application = try Guesser(server)
            let pool = server.instance.passwordPool
            let placesMax = server.project.limits.passwordQueuePerTenantMax
            for round in 0..<5 {
                let refused = pool.counts.refused
                for number in 0..<placesMax + 8 { try Self.sendSignUp(stranger, 1_000 * round + number) }
                try await until("the flood has taken all places") { pool.counts.refused > refused }
                let done = pool.counts.done
                _ = try application.signIn("ada@example.com", from: "203.0.113.9")
                #expect(pool.counts.done - done < placesMax / 2)
            }
            stranger.client.close()
            try await until("no sign-up waits") { pool.counts.queued == 0 }
        }
    }
}
