import Base
import Messages
import TestSupport
import Testing

/// What administrators do with second factors.
@Suite struct AdministeredFactorTests {
    private static let number = SecondFactorSignInTests.number

    @Test func `An admin adds a phone and removes factors`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            _ = try client.verifiedUser("ada@example.com")
            let uid = try client.find("ada@example.com").uid
            func add(_ number: Text, validateOnly: Bool = false) throws -> UsersAddSecondFactorResponse {
                try client.client.call(
                    "postern.v1.Users/AddSecondFactor",
                    UsersAddSecondFactorRequest(
                        uid: uid, phoneNumber: number, displayName: "work", validateOnly: validateOnly))
            }
            func remove(_ factorID: Text, all: Bool = false) throws -> UsersRemoveSecondFactorResponse {
                try client.client.call(
                    "postern.v1.Users/RemoveSecondFactor",
                    UsersRemoveSecondFactorRequest(uid: uid, factorID: factorID, all: all))
            }
            #expect(try add(Self.number, validateOnly: true).factorID.isEmpty)
            _ = try client.signIn("ada@example.com")
            let added = try add(Self.number)
            #expect(added.user?.secondFactors.map(\.phoneNumber) == [Self.number])
            #expect(added.user?.recoveryCodeCount == 0)
            expectRefusal("SECOND_FACTOR_EXISTS") { _ = try add(Self.number) }
            expectRefusal("INVALID_PHONE_NUMBER") { _ = try add("12") }
            let pending = try client.pending { _ = try client.signIn("ada@example.com") }
            let sent = try client.startSMS(pending, added.factorID)
            expectRefusal("MISSING_MFA_ENROLLMENT_ID") { _ = try remove("") }
            expectRefusal("MISSING_MFA_ENROLLMENT_ID") { _ = try remove(added.factorID, all: true) }
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") { _ = try remove("nobody") }
            #expect(try remove(added.factorID).user?.secondFactors.isEmpty == true)
            // A removed factor cannot finish a sign-in.
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") {
                _ = try client.finish(
                    pending, added.factorID,
                    .phone(
                        PhoneCredential(
                            sessionInfo: sent.sessionInfo, code: try client.newestCode(to: Self.number))))
            }
            _ = try client.signIn("ada@example.com")
            _ = try add(Self.number)
            #expect(try remove("", all: true).user?.secondFactors.isEmpty == true)
        }
    }

    /// An admin removes the factor because its phone was stolen. The thief has the password, too, and has signed in.
    @Test func `Sessions that showed a removed factor end, and others go on`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let phone = try client.enrollPhone(Self.number, user.tokens.idToken)
            let withBoth = try #require(phone.tokens)
            let withPhone = try Self.signIn(client, user, byPhone: phone.factorID)
            let withApp = try #require(try client.finish(try client.pending(user), user).tokens)
            let paper = AccountsFinalizeMfaSignInRequest.Proof.recoveryCode(user.recoveryCodes[0])
            let withPaper = try #require(try client.finish(try client.pending(user), "", paper).tokens)
            try client.setFactors(.disabled)
            let without = try #require(try client.signIn(user.email).tokens)
            func remove(_ factorID: Text, all: Bool = false) throws {
                let _: UsersRemoveSecondFactorResponse = try client.client.call(
                    "postern.v1.Users/RemoveSecondFactor",
                    UsersRemoveSecondFactorRequest(uid: user.uid, factorID: factorID, all: all))
            }
            func expectEnded(_ tokens: TokenPair) {
                expectRefusal("TOKEN_EXPIRED", cause: "ADMIN") { _ = try client.lookup(tokens.idToken) }
                expectRefusal("TOKEN_EXPIRED", cause: "ADMIN") { _ = try client.refresh(tokens.refreshToken) }
            }
            try remove(user.factorID)
            // The recovery code is one of those that came with the app.
            for tokens in [withApp, withBoth, withPaper] { expectEnded(tokens) }
            for tokens in [withPhone, without] { _ = try client.lookup(tokens.idToken) }
            try remove("", all: true)
            expectEnded(withPhone)
            _ = try client.lookup(without.idToken)
        }
    }

    private static func signIn(_ client: IdentityClient, _ user: AppUser, byPhone factorID: Text) throws -> TokenPair {
        let pending = try client.pending(user)
        let sent = try client.startSMS(pending, factorID)
        let code = try client.newestCode(to: number)
        let proof = AccountsFinalizeMfaSignInRequest.Proof.phone(
            PhoneCredential(sessionInfo: sent.sessionInfo, code: code))
        return try #require(try client.finish(pending, factorID, proof).tokens)
    }

    /// Somebody who has the password alone wants to have another email in the account before it has a factor.
    @Test func `A change of the email that was asked for before ends when an admin adds a factor`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let tokens = try client.verifiedUser("ada@example.com")
            let uid = try client.find("ada@example.com").uid
            try client.sendOob(.verifyAndChangeEmail, newEmail: "thief@example.com", idToken: tokens.idToken)
            let mail = try #require(try client.mails().first { $0.message.to == "thief@example.com" })
            let _: UsersAddSecondFactorResponse = try client.client.call(
                "postern.v1.Users/AddSecondFactor", UsersAddSecondFactorRequest(uid: uid, phoneNumber: Self.number))
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(mail.code) }
            #expect(try client.get(uid).email == "ada@example.com")
            // The sessions go on: to end them is another call.
            _ = try client.lookup(tokens.idToken)
        }
    }

    @Test func `An admin adds no factor to an unverified email, and end users add none by Update`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let tokens = try #require(try client.signUp("ada@example.com").tokens)
            let uid = try client.find("ada@example.com").uid
            expectRefusal("UNVERIFIED_EMAIL") {
                let _: UsersAddSecondFactorResponse = try client.client.call(
                    "postern.v1.Users/AddSecondFactor",
                    UsersAddSecondFactorRequest(uid: uid, phoneNumber: Self.number))
            }
            expectRefusal("USER_NOT_FOUND") {
                let _: UsersAddSecondFactorResponse = try client.client.call(
                    "postern.v1.Users/AddSecondFactor",
                    UsersAddSecondFactorRequest(uid: "nobody", phoneNumber: Self.number))
            }
            for path in ["second_factors", "recovery_code_count"] as [Text] {
                expectRefusal("INVALID_UPDATE_MASK") {
                    let _: AccountsUpdateResponse = try client.client.call(
                        "postern.v1.Accounts/Update",
                        AccountsUpdateRequest(
                            idToken: tokens.idToken, updateMask: ProtobufFieldMask(paths: [path])))
                }
            }
        }
    }

    @Test func `A tenant's policy has three states and two kinds`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            expectRefusal("INVALID_SECOND_FACTOR_POLICY") { try client.setFactors(.unspecified) }
            expectRefusal("INVALID_SECOND_FACTOR_POLICY") { try client.setFactors(.enabled, [.totp, .totp]) }
            expectRefusal("INVALID_SECOND_FACTOR_POLICY") { try client.setFactors(.enabled, [.unspecified]) }
            try client.setFactors(.mandatory, [.totp])
        }
    }
}
