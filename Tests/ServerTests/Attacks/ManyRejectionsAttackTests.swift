import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// Each mail whose code was used leaves its second code, "this was not me", behind. A caller who may make such mails
/// must not fill an account with these codes, because what ends the account's sessions reads them all in one write.
@Suite struct ManyRejectionsAttackTests {
    private static let owner: Text = "owner@example.com"

    @Test func anAccountHasABoundedNumberAndNoneIsPushedOut() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp(Self.owner).user!.uid
            let max = Limits().rejectionsPerUserMax
            var made: [UsersGenerateOobLinkResponse] = []
            for _ in 0..<max {
                made.append(try client.generateVerification(of: Self.owner))
                _ = try client.applyOob(made[made.count - 1].oobCode)
                server.clock.advance(by: .seconds(1))
            }
            let last = try client.generateVerification(of: Self.owner)
            let refused = failure { _ = try client.applyOob(last.oobCode) }
            #expect(refused.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
            #expect(try client.checkOob(last.oobCode).requestType == .verifyEmail)
            // An hour after the first mail there is room for one more.
            server.clock.advance(by: try #require(refused.retryAfter) - .milliseconds(2))
            expectRefusal("TOO_MANY_ATTEMPTS_TRY_LATER") { _ = try client.applyOob(last.oobCode) }
            _ = try client.applyOob(last.oobCode)
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(made[0].notMeCode) }
            _ = try client.applyOob(made[1].notMeCode)
            #expect(try client.get(uid).email.isEmpty)
        }
    }

    /// Expired codes are kept for a day, so that they can be told from wrong ones. New codes take their place.
    @Test func hoursOfVerifyingLeaveNoMoreThanOneHour() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp(Self.owner)
            let max = Limits().rejectionsPerUserMax
            for _ in 0..<4 {
                for _ in 0..<max {
                    _ = try client.applyOob(try client.generateVerification(of: Self.owner).oobCode)
                }
                server.clock.advance(by: .minutes(61))
            }
            // The last mail of each hour made room by removing those of the hour before.
            #expect(try server.project.store.read { try $0.count(Tables.oobCodes) } == max)
        }
    }

    /// An address that another account took meanwhile: nothing is used up.
    @Test func aChangeToATakenAddressKeepsItsCode() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp(Self.owner).tokens!.idToken
            try client.sendOob(.verifyAndChangeEmail, newEmail: "new@example.com", idToken: idToken)
            let mail = try #require(try client.mails().first)
            let other = try client.signUp("new@example.com").user!.uid
            for _ in 0..<2 { expectRefusal("EMAIL_EXISTS") { _ = try client.applyOob(mail.code) } }
            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: other))
            #expect(try client.applyOob(mail.code).email == "new@example.com")
        }
    }
}
