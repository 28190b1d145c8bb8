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
