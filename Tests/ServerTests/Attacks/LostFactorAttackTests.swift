import Base
import Messages
import TestSupport
import Testing

/// A thief has the password and one of the user's factors, and wants to stay after the factor is removed.
@Suite struct LostFactorAttackTests {
    private static let ownersNumber: Text = "+14155550123"
    private static let thiefsNumber: Text = "+14155550199"

    /// A user with an authenticator app, which a thief has, and a phone. The thief is signed in by the app.
    private struct Scene {
        let client: IdentityClient
        let user: AppUser
        let phoneID: Text
        /// The tokens of the owner's session, which showed the phone last.
        let owner: TokenPair
        let thief: TokenPair

        func renewCodes(_ tokens: TokenPair) throws -> [Secret] {
            let renewed: AccountsRenewRecoveryCodesResponse = try client.client.call(
                "postern.v1.Accounts/RenewRecoveryCodes", AccountsRenewRecoveryCodesRequest(idToken: tokens.idToken))
            return renewed.recoveryCodes
        }

        func withdraw(_ factorID: Text, _ tokens: TokenPair) throws -> AccountsWithdrawMfaEnrollmentResponse {
            try client.client.call(
                "postern.v1.Accounts/WithdrawMfaEnrollment",
                AccountsWithdrawMfaEnrollmentRequest(idToken: tokens.idToken, factorID: factorID))
        }

        func removeByAdmin(_ factorID: Text) throws -> User {
            let removed: UsersRemoveSecondFactorResponse = try client.client.call(
                "postern.v1.Users/RemoveSecondFactor",
                UsersRemoveSecondFactorRequest(uid: user.uid, factorID: factorID))
            return try #require(removed.user)
        }

        func signIn(byCode code: Secret) throws -> TokenPair {
            try #require(try client.finish(try client.pending(user), "", .recoveryCode(code)).tokens)
        }

        /// Signs in with the phone.
        func signInByPhone() throws -> TokenPair {
            let pending = try client.pending(user)
            let sent = try client.startSMS(pending, phoneID)
            let code = try client.newestCode(to: LostFactorAttackTests.ownersNumber)
            let proof = AccountsFinalizeMfaSignInRequest.Proof.phone(
                PhoneCredential(sessionInfo: sent.sessionInfo, code: code))
            return try #require(try client.finish(pending, phoneID, proof).tokens)
        }

        /// Shows another factor in a session.
        func reauthenticate(
            _ tokens: TokenPair, _ factorID: Text, _ proof: AccountsFinalizeMfaSignInRequest.Proof
        ) throws -> TokenPair {
            let pending = try client.pending {
                try SecondFactorSignInTests.reauthenticate(client, user, tokens.idToken)
            }
            return try #require(try client.finish(pending, factorID, proof).tokens)
        }

        func expectEnded(_ tokens: TokenPair) {
            expectRefusal("TOKEN_EXPIRED", cause: "ADMIN") { _ = try client.lookup(tokens.idToken) }
            expectRefusal("TOKEN_EXPIRED", cause: "ADMIN") { _ = try client.refresh(tokens.refreshToken) }
        }
    }

    private static func run(_ body: (Scene) throws -> Void) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let phone = try client.enrollPhone(ownersNumber, user.tokens.idToken)
            let thief = try #require(try client.finish(try client.pending(user), user).tokens)
            server.clock.advance(by: .seconds(60))
            try body(
                Scene(
                    client: client, user: user, phoneID: phone.factorID, owner: try #require(phone.tokens),
                    thief: thief))
        }
    }

    @Test func `A session ends with a factor that it showed before a recovery code`() async throws {
        try await Self.run { scene in
            let code = try scene.renewCodes(scene.thief)[0]
            let thief = try scene.reauthenticate(scene.thief, "", .recoveryCode(code))
            #expect(try scene.removeByAdmin(scene.user.factorID).secondFactors.map(\.factorID) == [scene.phoneID])
            scene.expectEnded(thief)
        }
    }

    @Test func `A session ends with a factor that it showed before it enrolled another`() async throws {
        try await Self.run { scene in
            let own = try scene.client.enrollPhone(Self.thiefsNumber, scene.thief.idToken)
            let ownTokens = try #require(own.tokens)
            let thief = try #require(try scene.withdraw(own.factorID, ownTokens).tokens)
            _ = try scene.removeByAdmin(scene.user.factorID)
            scene.expectEnded(thief)
        }
    }

    @Test func `A session goes on with the removal of a factor that it did not show`() async throws {
        try await Self.run { scene in
            let session = try scene.signInByPhone()
            let code = try scene.renewCodes(session)[0]
            let byCode = try scene.signIn(byCode: code)
            let left = try scene.removeByAdmin(scene.user.factorID)
            // Nobody who had the app made these codes.
            #expect(left.recoveryCodeCount == 9)
            for tokens in [session, byCode] { _ = try scene.client.lookup(tokens.idToken) }
            scene.expectEnded(scene.thief)
        }
    }

    @Test func `A session that showed a recovery code ends with the factor of whoever made the code`() async throws {
        try await Self.run { scene in
            let code = try scene.renewCodes(scene.thief)[0]
            let thief = try scene.signIn(byCode: code)
            // Codes that are made in this session are the thief's, too.
            let next = try scene.renewCodes(thief)[0]
            let again = try scene.signIn(byCode: next)
            #expect(try scene.removeByAdmin(scene.user.factorID).recoveryCodeCount == 0)
            for tokens in [thief, again] { scene.expectEnded(tokens) }
        }
    }

    @Test func `Recovery codes of a thief are void when the owner withdraws the factor`() async throws {
        try await Self.run { scene in
            let codes = try scene.renewCodes(scene.thief)
            let session = try scene.signInByPhone()
            let withdrawn = try scene.withdraw(scene.user.factorID, session)
            #expect(withdrawn.user?.secondFactors.map(\.factorID) == [scene.phoneID])
            #expect(withdrawn.user?.recoveryCodeCount == 0)
            let pending = try scene.client.pending(scene.user)
            expectRefusal("INVALID_CODE") {
                _ = try scene.client.finish(pending, "", .recoveryCode(codes[0]))
            }
            // The owner makes new ones, which only the phone can void.
            let own = try scene.renewCodes(try #require(withdrawn.tokens))
            _ = try scene.signIn(byCode: own[0])
        }
    }

    /// The user's codes are used up, so that an enrolment makes new ones.
    @Test func `Recovery codes that came with a factor go with what the session showed before`() async throws {
        try await Self.run { scene in
            for code in scene.user.recoveryCodes { _ = try scene.signIn(byCode: code) }
            let own = try scene.client.enrollPhone(Self.thiefsNumber, scene.thief.idToken)
            #expect(own.recoveryCodes.count == 10)
            #expect(try scene.removeByAdmin(scene.user.factorID).recoveryCodeCount == 0)
        }
    }
}
