import Base
import Messages
import TestSupport
import Testing

/// The phone numbers of users who are imported; for those of second factors see `ImportedFactorTests`.
@Suite struct ImportedPhoneNumberTests {
    /// Two of the numbers have the right form, and are of no country or too long for theirs: an admin knows better.
    @Test func `An import takes the phone numbers that Users.Create takes`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let good: [Text] = ["+14155550177", "+999123456789", "+4402079460000"]
            let bad: [Text] = ["14155550177", "+1 415 555 0177", "+1", "+04155550177", "+1234567890123456"]
            for number in good + bad {
                let expected = good.contains(number) ? "" : "INVALID_PHONE_NUMBER"
                let created = failure {
                    let _: UsersCreateResponse = try client.client.call(
                        "postern.v1.Users/Create", UsersCreateRequest(phoneNumber: number, validateOnly: true))
                }
                let answer = try ImportTests.importing(
                    client.client, [ImportUser(uid: number, phoneNumber: number)])
                #expect(created.reason == expected, "\(number)")
                #expect(answer.rejections.map(\.reason.string).joined() == expected, "\(number)")
            }
        }
    }
}
