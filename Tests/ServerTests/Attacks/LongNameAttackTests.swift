import Base
import Messages
import TestSupport
import Testing

@testable import Identity

/// An admin names users by more bytes than any user's name has, another one each time.
@Suite struct LongNameAttackTests {
    private static func uid(_ byteCount: Int, _ letter: UInt8) -> Text {
        Text(unchecked: [UInt8](repeating: UInt8(ascii: "a") + letter, count: byteCount))
    }

    /// Makes one of eight changes of a user.
    private static func change(_ number: Int, of uid: Text, by client: RawClient) throws {
        let google: Text = "google.com"
        switch number {
        case 0: let _: UsersDeleteResponse = try client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
        case 1:
            let _: UsersUpdateResponse = try client.call(
                "postern.v1.Users/Update",
                UsersUpdateRequest(uid: uid, updateMask: ProtobufFieldMask(paths: ["disabled"])))
        case 2:
            let _: UsersSetCustomClaimsResponse = try client.call(
                "postern.v1.Users/SetCustomClaims", UsersSetCustomClaimsRequest(uid: uid))
        case 3:
            let _: UsersRevokeTokensResponse = try client.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
        case 4:
            let _: UsersLinkResponse = try client.call(
                "postern.v1.Users/Link",
                UsersLinkRequest(uid: uid, provider: ProviderInfo(providerID: google, rawID: "g-1")))
        case 5:
            let _: UsersUnlinkResponse = try client.call(
                "postern.v1.Users/Unlink", UsersUnlinkRequest(uid: uid, providerID: google))
        case 6:
            let _: UsersAddSecondFactorResponse = try client.call(
                "postern.v1.Users/AddSecondFactor",
                UsersAddSecondFactorRequest(uid: uid, phoneNumber: "+14155550101"))
        default:
            let _: UsersRemoveSecondFactorResponse = try client.call(
                "postern.v1.Users/RemoveSecondFactor", UsersRemoveSecondFactorRequest(uid: uid, all: true))
        }
    }

    @Test(arguments: 0..<8) func `A name of a megabyte is refused and not kept`(_ number: Int) async throws {
        try await withServer { server in
            let client = try server.connect()
            // With a credential a frame may be longer. The default pool's key has a byte besides the uid.
            expectRefusal("USER_NOT_FOUND") { try Self.change(number, of: Self.uid(510, 0), by: client) }
            for (letter, byteCount) in [511, 65_536, 1 << 20, 1 << 20].enumerated() {
                expectRefusal("VALUE_TOO_LONG", "\(byteCount) bytes") {
                    try Self.change(number, of: Self.uid(byteCount, UInt8(letter)), by: client)
                }
            }
            #expect(server.project.users.keptKeyByteCount <= 511)
        }
    }
}
