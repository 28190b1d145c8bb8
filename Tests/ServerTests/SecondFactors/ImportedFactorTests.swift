import Base
import Messages
import TestSupport
import Testing

/// Second factors that come with an import.
@Suite struct ImportedFactorTests {
    private static func row(_ number: Text) -> ImportUser {
        ImportUser(
            uid: "u1", email: "ada@example.com", emailVerified: true,
            passwordHash: Secret("$2b$04$abcdefghijklmnopqrstuuoYKiLx9Ng5RIpO22PxQ9G8YrDbYXRJ6"),
            secondFactors: [ImportSecondFactor(factor: SecondFactor(kind: .phone, phoneNumber: number))])
    }

    private static func importing(_ client: IdentityClient, _ number: Text) throws -> UsersImportResponse {
        try ImportTests.importing(client.client, [row(number)], spec: .bcrypt(BcryptSpec()))
    }

    /// No code could be sent to such a number, and its user could never finish a sign-in.
    @Test(arguments: ["+999123456789", "+141555501", "+4402079460000", "14155550177", "+1"] as [Text])
    func `A phone with a number that does not exist is refused`(number: Text) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let answer = try Self.importing(client, number)
            #expect(answer.createdCount == 0)
            let rejection = try #require(answer.rejections.first)
            #expect(rejection.reason == "INVALID_PHONE_NUMBER")
            #expect(rejection.message.string.contains("second_factors"))
        }
    }

    /// The row says how old the factor is, and knows nothing of the account that had the uid before.
    @Test func `Devices of a deleted account are not known to an account that is imported anew`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let secret = Secret([UInt8](repeating: 7, count: 20))
            let factor = SecondFactor(factorID: "f1", kind: .totp, enrolledAtMicros: 1)
            var row = Self.row("")
            row.secondFactors = [ImportSecondFactor(factor: factor, totpSecret: secret)]
            let user = AppUser(
                email: row.email, uid: row.uid, factorID: "f1", secret: secret, recoveryCodes: [], tokens: TokenPair())
            func makeAccount() throws {
                let answer = try ImportTests.importing(client.client, [row], spec: .bcrypt(BcryptSpec()))
                try #require(answer.createdCount == 1, "\(answer.rejections)")
            }
            func begin() throws -> Secret {
                try client.pending { _ = try client.signIn(user.email, password: "another horse") }
            }
            func guess(_ deviceToken: Text) throws -> String {
                let (pending, code) = (try begin(), user.wrongCode(server))
                return failure {
                    _ = try client.finish(pending, user.factorID, .totpCode(code), deviceToken: deviceToken)
                }.reason
            }
            try makeAccount()
            let deviceToken = try client.finish(try begin(), user).deviceToken
            server.clock.advance(by: .seconds(60))
            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: user.uid))
            try makeAccount()
            let strangers = try (0..<11).map { _ in try guess("") }
            #expect(strangers.first == "INVALID_CODE" && strangers.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
            #expect(try guess(deviceToken) == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    /// Until the time of the first factor, no device would be known, and strangers could keep the user out.
    @Test func `Times to come count as the time of the import`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let now = server.clock.clock.now()
            let later = (now + .days(400)).microseconds
            let secret = Secret([UInt8](repeating: 7, count: 20))
            var row = Self.row("")
            (row.createdAtMicros, row.lastSignInAtMicros) = (.max, later)
            row.secondFactors = [
                ImportSecondFactor(
                    factor: SecondFactor(factorID: "f1", kind: .totp, enrolledAtMicros: later), totpSecret: secret)
            ]
            let answer = try ImportTests.importing(client.client, [row], spec: .bcrypt(BcryptSpec()))
            try #require(answer.createdCount == 1, "\(answer.rejections)")
            let imported = try client.get(row.uid)
            #expect(imported.createdAtMicros == now.microseconds && imported.lastSignInAtMicros == now.microseconds)
            #expect(imported.secondFactors.map(\.enrolledAtMicros) == [now.microseconds])
            let user = AppUser(
                email: row.email, uid: row.uid, factorID: "f1", secret: secret, recoveryCodes: [], tokens: TokenPair())
            func begin() throws -> Secret {
                try client.pending { _ = try client.signIn(user.email, password: "another horse") }
            }
            func finish(_ code: Secret, _ deviceToken: Text = .empty) throws -> Text {
                try client.finish(try begin(), user.factorID, .totpCode(code), deviceToken: deviceToken).deviceToken
            }
            server.clock.advance(by: .seconds(60))
            let deviceToken = try finish(user.code(server))
            server.clock.advance(by: .seconds(60))
            let strangers = (0..<11).map { _ in failure { _ = try finish(user.wrongCode(server)) }.reason }
            #expect(strangers.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
            _ = try finish(user.code(server), deviceToken)
        }
    }

    @Test(arguments: ["+14155550177", "+1 (415) 555-0177"] as [Text])
    func `A phone that is imported can be shown, however its number was written`(number: Text) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let answer = try Self.importing(client, number)
            try #require(answer.createdCount == 1, "\(answer.rejections)")
            let factor = try #require(try client.get("u1").secondFactors.first)
            #expect(factor.phoneNumber == "+14155550177")
            let pending = try client.pending { _ = try client.signIn("ada@example.com", password: "another horse") }
            let sent = try client.startSMS(pending, factor.factorID)
            let code = PhoneCredential(
                sessionInfo: sent.sessionInfo, code: try client.newestCode(to: "+14155550177"))
            #expect(try client.finish(pending, factor.factorID, .phone(code)).user?.uid == "u1")
        }
    }
}
