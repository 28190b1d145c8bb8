import Base
import Identity
import JSON
import Messages
import Store
import TestSupport
import Testing

/// Signing in with a phone number, adding it to an account, changing it and taking it away.
@Suite struct PhoneSignInTests {
    static let number: Text = "+14155550123"
    static let other: Text = "+4915112345678"

    @Test func `A code signs up, and the next one signs in to the same account`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let sent = try client.sendCode(to: "+1 (415) 555-0123")
            #expect(sent.phoneNumber == Self.number)
            #expect(sent.expiresAtMicros == (server.clock.clock.now() + .minutes(5)).microseconds)
            let code = IdentityClient.PhoneCode(
                sessionInfo: sent.sessionInfo, code: try client.newestCode(to: Self.number))
            let first = try client.signIn(code)
            #expect(first.isNewUser && first.user?.phoneNumber == Self.number)
            #expect(first.user?.providers.map(\.providerID) == ["phone"])
            let claims = claims(of: first.tokens!.idToken)
            #expect(claims["phone_number"]?.text == Self.number)
            #expect(claims["firebase"]?["sign_in_provider"]?.text == "phone")
            #expect(claims["firebase"]?["identities"]?["phone"]?.array?.first?.text == Self.number)
            let second = try client.signIn(phone: Self.number)
            #expect(!second.isNewUser && second.user?.uid == first.user?.uid)
        }
    }

    @Test func `The call is refused in the order that the protocol says`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func send(_ number: Text, _ locale: Text = .empty) -> String {
                failure { try client.sendCode(to: number, locale: locale) }.reason
            }
            let none = IdentityClient.PhoneCode(sessionInfo: .empty, code: .empty)
            #expect(send("") == "OPERATION_NOT_ALLOWED")
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try client.signIn(none) }
            try client.allowPhones(["blocked_sms_regions"]) { $0.blockedSMSRegions = ["KP"] }
            #expect(send("") == "MISSING_PHONE_NUMBER")
            for bad in [
                "4155550123", "+0155550123", "+1415555012", "+44 (0)20 7946 0000", "+999123456789", "+1x4155550123",
            ] {
                #expect(send(Text(bad)) == "INVALID_PHONE_NUMBER", "\(bad)")
            }
            #expect(send(Self.number, Text(String(repeating: "x", count: 36))) == "INVALID_LOCALE")
            #expect(send("+85021234567") == "SMS_REGION_NOT_ALLOWED")
            #expect(send("+881612345678") == "SMS_REGION_NOT_ALLOWED")
            expectRefusal("MISSING_SESSION_INFO") { _ = try client.signIn(none) }
            let code = try client.code(to: Self.number)
            func shown(_ text: String) -> String {
                failure { _ = try client.signIn(.init(sessionInfo: code.sessionInfo, code: Secret(text))) }.reason
            }
            #expect(shown("") == "MISSING_VERIFICATION_CODE")
            for bad in ["12345", "1234567", "12345x", "１２３４５６"] { #expect(shown(bad) == "INVALID_CODE") }
            expectRefusal("INVALID_SESSION_INFO") {
                _ = try client.signIn(.init(sessionInfo: Secret("nonsense"), code: code.code))
            }
            expectRefusal("MISSING_PHONE_NUMBER") { _ = try client.signIn(temporaryProof: "x", "") }
            expectRefusal("INVALID_TEMPORARY_PROOF") { _ = try client.signIn(temporaryProof: "x", Self.number) }
            // None of these attempts counted as a guess.
            _ = try client.signIn(code)
        }
    }

    @Test func `A code ends after five minutes, after its use, and after five wrong ones`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let late = try client.code(to: Self.number)
            server.clock.advance(by: .minutes(5))
            let expired = failure { _ = try client.signIn(late) }
            #expect(expired.reason == "SESSION_EXPIRED" && expired.metadata.first?.value == "EXPIRED")
            let used = try client.code(to: Self.number)
            _ = try client.signIn(used)
            expectRefusal("INVALID_SESSION_INFO") { _ = try client.signIn(used) }
            let guessed = try client.code(to: Self.number)
            for distance in 1...5 {
                expectRefusal("INVALID_CODE") { _ = try client.signIn(guessed.wrong(distance)) }
            }
            let dead = failure { _ = try client.signIn(guessed) }
            #expect(dead.reason == "SESSION_EXPIRED" && dead.metadata.first?.value == "TRIES")
            // Another code is as good as ever: nobody is locked out.
            _ = try client.signIn(phone: Self.number)
        }
    }

    // MARK: Linking

    @Test func `A signed-in user adds a number, changes it, proves itself by it and removes it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let ada = try client.signUp("ada@example.com")
            let elsewhere = try client.signIn("ada@example.com")
            let added = try client.signIn(
                try client.code(to: Self.number, idToken: ada.tokens!.idToken), linkingTo: ada.tokens!.idToken)
            #expect(added.user?.uid == ada.user?.uid && added.user?.phoneNumber == Self.number)
            _ = try client.lookup(elsewhere.tokens!.idToken)

            let second = try client.code(to: Self.other, idToken: added.tokens!.idToken)
            expectRefusal("PROVIDER_ALREADY_LINKED") { _ = try client.signIn(second, linkingTo: added.tokens!.idToken) }
            let changed = try client.signIn(second, linkingTo: added.tokens!.idToken, change: true)
            #expect(changed.user?.phoneNumber == Self.other)
            // Somebody with the old phone could have begun the other session, so it ends.
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(elsewhere.tokens!.idToken) }
            #expect(try client.signIn(phone: Self.number).isNewUser)

            let proof = try client.code(to: Self.other)
            let again: AccountsReauthenticateResponse = try client.client.call(
                "postern.v1.Accounts/Reauthenticate",
                AccountsReauthenticateRequest(
                    idToken: changed.tokens!.idToken,
                    credential: .phone(PhoneCredential(sessionInfo: proof.sessionInfo, code: proof.code))))
            let unlinked: AccountsUnlinkResponse = try client.client.call(
                "postern.v1.Accounts/Unlink",
                AccountsUnlinkRequest(idToken: again.tokens!.idToken, providerID: "phone"))
            #expect(unlinked.user?.phoneNumber == "" && unlinked.user?.providers.map(\.providerID) == ["password"])
        }
    }

    @Test func `A number of another account brings a proof that signs in to it once`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let owner = try client.signIn(phone: Self.number)
            let guest = try client.signUp()
            let refused = failure {
                _ = try client.signIn(try client.code(to: Self.number), linkingTo: guest.tokens!.idToken)
            }
            #expect(refused.reason == "CREDENTIAL_ALREADY_IN_USE")
            let metadata = Dictionary(uniqueKeysWithValues: refused.metadata.map { ($0.key, $0.value) })
            #expect(metadata["detail"] == "PHONE_NUMBER_EXISTS" && metadata["phone_number"] == "\(Self.number)")
            let proof = Text(try #require(metadata["temporary_proof"]))
            expectRefusal("INVALID_TEMPORARY_PROOF") { _ = try client.signIn(temporaryProof: proof, Self.other) }
            let signedIn = try client.signIn(temporaryProof: proof, Self.number)
            #expect(signedIn.user?.uid == owner.user?.uid && !signedIn.isNewUser)
            expectRefusal("INVALID_TEMPORARY_PROOF") { _ = try client.signIn(temporaryProof: proof, Self.number) }
            #expect(try client.get(guest.user!.uid).phoneNumber.isEmpty)
        }
    }

    @Test func `Adding a number needs a recent login, before any message is sent`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let ada = try client.signUp("ada@example.com")
            let code = try client.code(to: Self.number)
            server.clock.advance(by: .minutes(6))
            let count = try client.mails().count
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") {
                try client.sendCode(to: Self.number, idToken: ada.tokens!.idToken)
            }
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") {
                _ = try client.signIn(code, linkingTo: ada.tokens!.idToken)
            }
            #expect(try client.mails().count == count)
        }
    }

    // MARK: Test numbers and words

    @Test func `A test number is sent nothing, and its code is always good`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones(["test_phone_numbers"]) {
                $0.testPhoneNumbers = [TestPhoneNumber(phoneNumber: "+1 415 555 0123", code: "123456")]
            }
            for _ in 0..<30 {
                let sent = try client.sendCode(to: Self.number)
                _ = try client.signIn(.init(sessionInfo: sent.sessionInfo, code: Secret("123456")))
            }
            #expect(try client.mails().isEmpty)
            expectRefusal("INVALID_TEST_PHONE_NUMBER") {
                try client.allowPhones(["test_phone_numbers"]) {
                    $0.testPhoneNumbers = (0...10).map {
                        TestPhoneNumber(phoneNumber: Text("+141555501\($0 + 10)"), code: "123456")
                    }
                }
            }
            expectRefusal("INVALID_SMS_REGION") {
                try client.allowPhones(["allowed_sms_regions"]) { $0.allowedSMSRegions = ["de"] }
            }
        }
    }

    @Test func `The message says what the code is for, in the tenant's words where it has some`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones(["display_name"]) { $0.displayName = "Acme" }
            let ada = try client.signUp("ada@example.com")
            func text(_ idToken: Text = .empty, _ locale: Text = .empty) throws -> String {
                try client.sendCode(to: Self.number, idToken: idToken, locale: locale)
                let sms = try #require(try client.mails().first)
                return sms.contents.text.string.replacing(sms.contents.code.string, with: "#")
            }
            #expect(try text() == "# is your code to sign in to Acme. Give it to nobody.")
            // This code, too, leads into the account that has the number, by a temporary proof.
            #expect(
                try text(ada.tokens!.idToken)
                    == "# is your code to add this phone number to your Acme account. Give it to nobody.")
            try client.configureSMS(["templates"]) {
                $0.templates = [
                    SmsTemplate(locale: "de", text: "%APP_NAME%: %CODE%"),
                    SmsTemplate(purpose: .link, text: "Neue Nummer: %CODE%"),
                ]
            }
            #expect(try text(.empty, "de-CH") == "Acme: #")
            #expect(try text(ada.tokens!.idToken) == "Neue Nummer: #")
            expectRefusal("INVALID_TEMPLATE") {
                try client.configureSMS(["templates"]) { $0.templates = [SmsTemplate(text: "no code")] }
            }
        }
    }
}

extension PhoneSignIn: SignInDriver {
    /// The server sends no code to an unknown number, so there is nothing to refuse.
    static var answerToNewcomerWithoutSignUp: String { "no SMS" }

    private static func number(_ name: Text) -> Text {
        Text("+1415555\(1_000 + name.bytes.reduce(0) { ($0 * 31 + Int($1)) % 9_000 })")
    }

    static func signIn(_ client: IdentityClient, _ name: Text, _ variant: String) throws {
        _ = try client.signIn(phone: number(name))
    }

    static func signInWrongly(_ client: IdentityClient, _ name: Text) throws {
        _ = try client.signIn(.init(sessionInfo: Secret("nonsense"), code: Secret("123456")))
    }
}
