import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// An attacker guesses codes, presents codes of others, or presents one twice.
@Suite struct VerificationCodeAttackTests {
    private static let number = PhoneSignInTests.number
    private static let other = PhoneSignInTests.other

    @Test func `Of a thousand guesses at the same time five are judged`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let code = try client.code(to: Self.number)
            let answers = try await atOnce(20) { thread in
                let guesser = try IdentityClient(server)
                return (0..<50).map { number in
                    failure { _ = try guesser.signIn(code.wrong(1 + thread * 50 + number)) }.reason
                }
            }
            let reasons = try answers.flatMap { try $0.get() }
            #expect(reasons.count == 1_000 && reasons.count { $0 == "INVALID_CODE" } == 5)
            #expect(Set(reasons) == ["INVALID_CODE", "SESSION_EXPIRED"])
            expectRefusal("SESSION_EXPIRED", cause: "TRIES") { _ = try client.signIn(code) }
        }
    }

    @Test func `Of many who show the right code at the same time one is signed in`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let code = try client.code(to: Self.number)
            let answers = try await atOnce(10) { _ in
                failure { _ = try IdentityClient(server).signIn(code) }.reason
            }
            let reasons = try answers.map { try $0.get() }
            #expect(reasons.count { $0.isEmpty } == 1)
            #expect(Set(reasons) == ["", "INVALID_SESSION_INFO"])
        }
    }

    @Test func `A code is good only in the session that it was made for`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let (mine, theirs) = (try client.code(to: Self.number), try client.code(to: Self.other))
            expectRefusal("INVALID_CODE") {
                _ = try client.signIn(.init(sessionInfo: theirs.sessionInfo, code: mine.code))
            }
            // The code does not count in another tenant either.
            try server.makeTenant("acme", ["enable_phone_signin"]) { $0.enablePhoneSignin = true }
            expectRefusal("INVALID_SESSION_INFO") {
                let _: AccountsSignInWithPhoneNumberResponse = try client.client.call(
                    "postern.v1.Accounts/SignInWithPhoneNumber",
                    AccountsSignInWithPhoneNumberRequest(
                        tenantID: "acme", sessionInfo: mine.sessionInfo, code: mine.code))
            }
            _ = try client.signIn(mine)
        }
    }

    @Test func `A code that is for adding a number serves its user alone`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let ada = try client.signUp("ada@example.com")
            let eve = try client.signUp("eve@example.com")
            let code = try client.code(to: Self.number, idToken: ada.tokens!.idToken)
            expectRefusal("INVALID_SESSION_INFO") { _ = try client.signIn(code) }
            expectRefusal("INVALID_SESSION_INFO") { _ = try client.signIn(code, linkingTo: eve.tokens!.idToken) }
            _ = try client.signIn(code, linkingTo: ada.tokens!.idToken)
        }
    }

    @Test func `A proof of a number is good in its tenant and for its number only, and ends with its code`()
        async throws
    {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            _ = try client.signIn(phone: Self.number)
            let guest = try client.signUp()
            let code = try client.code(to: Self.number)
            func refused() -> Text {
                let refused = failure { _ = try client.signIn(code, linkingTo: guest.tokens!.idToken) }
                return Text(refused.metadata("temporary_proof") ?? "")
            }
            let (first, second) = (refused(), refused())
            try server.makeTenant("acme", ["enable_phone_signin"]) { $0.enablePhoneSignin = true }
            expectRefusal("INVALID_TEMPORARY_PROOF") {
                let _: AccountsSignInWithPhoneNumberResponse = try client.client.call(
                    "postern.v1.Accounts/SignInWithPhoneNumber",
                    AccountsSignInWithPhoneNumberRequest(
                        tenantID: "acme", temporaryProof: Secret(first.bytes), phoneNumber: Self.number))
            }
            _ = try client.signIn(temporaryProof: first, Self.number)
            expectRefusal("INVALID_TEMPORARY_PROOF") { _ = try client.signIn(temporaryProof: second, Self.number) }
            expectRefusal("INVALID_SESSION_INFO") { _ = try client.signIn(code) }
            let late = failure {
                _ = try client.signIn(try client.code(to: Self.number), linkingTo: guest.tokens!.idToken)
            }
            server.clock.advance(by: .minutes(10))
            expectRefusal("INVALID_TEMPORARY_PROOF") {
                _ = try client.signIn(temporaryProof: Text(late.metadata("temporary_proof") ?? ""), Self.number)
            }
        }
    }

    @Test func `A code and its proofs count once, whichever is shown first and however late the others are`()
        async throws
    {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            _ = try client.signIn(phone: Self.number)
            let guest = try client.signUp()
            func proof(of code: IdentityClient.PhoneCode) -> Text {
                let refused = failure { _ = try client.signIn(code, linkingTo: guest.tokens!.idToken) }
                #expect(refused.reason == "CREDENTIAL_ALREADY_IN_USE")
                return Text(refused.metadata("temporary_proof") ?? "")
            }
            let shown = try client.code(to: Self.number)
            let ofShown = proof(of: shown)
            _ = try client.signIn(shown)
            expectRefusal("INVALID_TEMPORARY_PROOF") { _ = try client.signIn(temporaryProof: ofShown, Self.number) }
            // One proof ends four minutes after the other, and is shown when the other would have ended.
            let code = try client.code(to: Self.number)
            let early = proof(of: code)
            server.clock.advance(by: .minutes(4))
            let late = proof(of: code)
            _ = try client.signIn(temporaryProof: early, Self.number)
            server.clock.advance(by: .minutes(8))
            await server.project.sweep()
            expectRefusal("INVALID_TEMPORARY_PROOF") { _ = try client.signIn(temporaryProof: late, Self.number) }
        }
    }

    @Test func `The fixed code of a test number is not found by trying`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones(["test_phone_numbers"]) {
                $0.testPhoneNumbers = [TestPhoneNumber(phoneNumber: Self.number, code: "999999")]
            }
            var judged = 0
            for round in 0..<10 {
                let sessionInfo = try client.sendCode(to: Self.number).sessionInfo
                for guess in 0..<5 {
                    let code = Secret("\(100_000 + round * 5 + guess)")
                    let reason = failure { _ = try client.signIn(.init(sessionInfo: sessionInfo, code: code)) }.reason
                    judged += reason == "INVALID_CODE" ? 1 : 0
                    #expect(["INVALID_CODE", "TOO_MANY_ATTEMPTS_TRY_LATER"].contains(reason))
                }
            }
            #expect(judged == 30)
            // The refusal is not permanent.
            server.clock.advance(by: .minutes(5))
            let sessionInfo = try client.sendCode(to: Self.number).sessionInfo
            _ = try client.signIn(.init(sessionInfo: sessionInfo, code: Secret("999999")))
        }
    }

    @Test func `A stolen store tells no code`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let code = try client.code(to: Self.number)
            let digits = code.code.withBytes { [UInt8]($0) }
            let rows = try server.project.store.read { transaction in
                var found: [[UInt8]] = []
                try transaction.scan(Tables.verificationCodes) { row in
                    found.append(try row.record.encoded())
                    return true
                }
                try transaction.scan(Tables.outbox) { row in
                    found.append(try row.record.encoded())
                    return true
                }
                return found
            }
            #expect(rows.count == 2)
            #expect(
                rows.allSatisfy {
                    Text(unchecked: $0).string.firstRange(of: String(decoding: digits, as: UTF8.self)) == nil
                })
        }
    }
}
