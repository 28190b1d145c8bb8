import Base
import Messages
import TestSupport
import Testing

/// The texts that applications may send as the addresses of end users.
@Suite struct EndUserAddressAttackTests {
    /// Every method that takes an address. A method that also takes an ID token comes with and without one, since
    /// some methods then do something else. Most of these requests are wrong in everything else.
    private static let calls: [(method: PublishedMethod, hasIDToken: Bool)] = PublishedMethod.all.flatMap { method in
        guard method.field(named: "end_user_ip") != nil else { return [(PublishedMethod, Bool)]() }
        return method.field(named: "id_token") == nil ? [(method, false)] : [(method, false), (method, true)]
    }

    private static func request(_ method: PublishedMethod, _ address: Text, hasIDToken: Bool) -> EncodedMessage {
        var request = EncodedMessage()
        if let field = method.field(named: "end_user_ip") { request.append(field.number, address) }
        if hasIDToken, let field = method.field(named: "id_token") { request.append(field.number, "x") }
        return request
    }

    private static let bad: [Text] = [
        Text(String(repeating: "1", count: 1 << 20)), Text(String(repeating: "::", count: 23)), "fe80::1%eth0",
        "192.0.2", "192.0.2.1 ", "192.0.2.1:80", "localhost", "0x7f000001",
    ]

    @Test func `What is no address is refused by every method that takes one, before anything else`() async throws {
        #expect(Self.calls.count > 12, "the published methods were not read")
        try await withServer { server in
            let guesser = try Guesser(server)
            let untrusted = try Guesser(server, isTrusted: false)
            // A connection that has shown its credential takes longer frames.
            for someone in [guesser, untrusted] { _ = someone.tryPassword("x", of: "eve@example.com") }
            for (method, hasIDToken) in Self.calls {
                for address in Self.bad {
                    let request = Self.request(method, address, hasIDToken: hasIDToken)
                    func reason(_ guesser: Guesser) -> String {
                        failure { let _: EncodedMessage = try guesser.client.call(method.fullName, request) }.reason
                    }
                    #expect(reason(guesser) == "INVALID_END_USER_IP", "\(method.fullName)")
                    // From an untrusted credential the address is ignored, but its length is bounded all the same.
                    let other = reason(untrusted)
                    let isLong = address.byteCount > 45
                    #expect((other == "INVALID_END_USER_IP") == isLong, "\(method.fullName): \(other)")
                }
            }
        }
    }

    @Test func `A session shows its address as everybody writes it`() async throws {
        try await withServer { server in
            _ = try IdentityClient(server).signUp("ada@example.com")
            let guesser = try Guesser(server)
            for (written, stored) in [
                ("::FFFF:192.0.2.7", "192.0.2.7"), ("2001:0DB8:0:0::0007", "2001:db8::7"),
            ] as [(Text, Text)] {
                let signedIn = try guesser.signIn("ada@example.com", from: written)
                let listed: SessionsListResponse = try guesser.client.call(
                    "postern.v1.Sessions/List", SessionsListRequest(idToken: signedIn.tokens?.idToken ?? .empty))
                #expect(listed.sessions.first { $0.current }?.endUserIP == stored)
            }
        }
    }
}
