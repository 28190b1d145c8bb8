import Base
import Crypto
import Identity
import Messages
import Service
import TestSupport
import Testing

/// Some passwords have to be tried in two forms. Then a right password is answered sooner than a wrong one is
/// refused, and a caller who ends each call in between learns what is right. So every password that was checked
/// counts as a guess.
@Suite struct CutGuessAttackTests {
    private static let refused = "TOO_MANY_ATTEMPTS_TRY_LATER"

    @Test func aGuessWhoseDeadlinePassesWhileItIsHashedIsCharged() async throws {
        try await withServer(configure: { $0.project.passwordProfile = .moreMemory }) { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ann@example.com")
            var reason = ""
            // A hash takes more than 10 ms. If the machine does not begin one within 5 ms, no password was checked
            // and nothing is charged: hence many attempts.
            for number in 0..<400 where reason != Self.refused {
                reason = try Self.guess("gue\u{301}ss\(number)", milliseconds: 5, client.client)
            }
            #expect(reason == Self.refused)
        }
    }

    private static func guess(_ password: String, milliseconds: Int64, _ client: RawClient) throws -> String {
        let request = AccountsSignInWithPasswordRequest(email: "ann@example.com", password: Secret(password))
        try client.send(
            client.request(
                "postern.v1.Accounts/SignInWithPassword", request, stream: client.nextStream(),
                timeoutNanoseconds: milliseconds * 1_000_000))
        do {
            let _: AccountsSignInWithPasswordResponse = try RawClient.response(try client.readFrame())
            return "OK"
        } catch let failure as Failure {
            return failure.reason
        }
    }
}
