import Testing

@testable import Transport

@Suite struct SocketAddressTests {
    @Test(
        arguments: [
            ("127.0.0.1:7400", "127.0.0.1", 7400, true), ("0.0.0.0:0", "0.0.0.0", 0, false),
            ("127.255.0.9:1", "127.255.0.9", 1, true), ("[::1]:65535", "::1", 65535, true),
            ("[::]:80", "::", 80, false), ("[fe80::1]:80", "fe80::1", 80, false),
            ("[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1", 80, false),
        ] as [(String, String, UInt16, Bool)])
    func numericAddressesAreRead(_ text: String, _ host: String, _ port: UInt16, _ isLoopback: Bool) throws {
        let address = try #require(SocketAddress(text))
        #expect(address.host == host && address.port == port)
        #expect(address.isLoopback == isLoopback)
        #expect(address.description == text)
    }

    @Test func pathsAreRead() throws {
        let longest = "unix:/" + String(repeating: "a", count: SocketAddress.pathByteCountMax - 1)
        for text in ["unix:/run/postern/rpc.sock", longest] {
            let address = try #require(SocketAddress(text))
            #expect(address.description == text && address.isLoopback)
            #expect(address.path == String(text.dropFirst("unix:".count)))
        }
        for text in ["unix:", "unix:rpc.sock", "unix:@name", "unix:127.0.0.1:80", "Unix:/a", longest + "a"] {
            #expect(SocketAddress(text) == nil, "\(text)")
        }
    }

    @Test(arguments: [
        "", ":", "7400", "localhost:7400", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80",
        "[::1]", "[::1:80", "127.0.0:80", "1.2.3.4.5:80", "256.0.0.1:80", "127.0.0.1:80 ",
    ])
    func otherTextIsRefused(_ text: String) { #expect(SocketAddress(text) == nil) }
}
