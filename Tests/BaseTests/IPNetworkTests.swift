import Base
import Testing

@Suite struct IPNetworkTests {
    @Test(
        arguments: [
            ("192.0.2.0/24", "192.0.2.255", true), ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.128/25", "192.0.2.127", false), ("10.0.0.0/8", "10.255.0.1", true),
            ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "::1", false), ("::/0", "127.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", true), ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.0/8", "::ffff:127.9.9.9", true), ("2001:db8::/33", "2001:db8:7fff::1", true),
            ("2001:db8::/33", "2001:db8:8000::1", false), ("::1/128", "::1", true),
        ])
    func `A network holds the addresses with its prefix`(text: String, address: String, isIn: Bool) throws {
        let network = try #require(IPNetwork(text))
        #expect(network.contains(try #require(IPAddress(address))) == isIn)
    }

    @Test(arguments: [
        "", "/", "10.0.0.0/", "/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0.1/8", "10/8",
        "::/129", "localhost", "::ffff:10.0.0.0/104", " 10.0.0.0/8", "10.0.0.0/99999999999999999999",
    ])
    func `Other text is no network`(text: String) { #expect(IPNetwork(text) == nil) }
}
