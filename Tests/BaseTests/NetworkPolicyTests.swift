import Base
import Testing

@Suite struct NetworkPolicyTests {
    @Test func aPolicyPermitsWhatItSays() throws {
        let addresses = try ["8.8.8.8", "10.0.0.1", "127.0.0.1", "169.254.169.254"].map { try #require(IPAddress($0)) }
        func permitted(http: Bool, privates: Bool, isPlaintext: Bool) -> [Bool] {
            let policy = NetworkPolicy(allowsHTTPToLoopback: http, allowsPrivateAddresses: privates)
            return addresses.map { policy.permits($0, isPlaintext: isPlaintext) }
        }
        #expect(permitted(http: false, privates: false, isPlaintext: false) == [true, false, false, false])
        #expect(permitted(http: false, privates: true, isPlaintext: false) == [true, true, true, false])
        #expect(permitted(http: true, privates: false, isPlaintext: false) == [true, false, true, false])
        #expect(permitted(http: true, privates: true, isPlaintext: true) == [false, false, true, false])
        #expect(permitted(http: false, privates: true, isPlaintext: true) == [false, false, false, false])
    }

    /// What `mayReach` says of a host, with and without `allow_private_addresses`.
    @Test(arguments: [
        ("8.8.8.8", true, true), ("134744072", true, true), ("2606:4700::1111", true, true),
        ("10.0.0.1", false, true), ("167772161", false, true), ("0x0a000001", false, true), ("012.0.0.1", false, true),
        ("10.1", false, true), ("fd00::1", false, true), ("::ffff:10.0.0.1", false, true),
        ("127.0.0.1", false, true), ("127.1", false, true), ("0x7f000001", false, true), ("2130706433", false, true),
        ("0177.0.0.1", false, true), ("::1", false, true), ("localhost", false, true), ("a.LocalHost", false, true),
        ("localhost.", false, true),
        ("169.254.169.254", false, false), ("2852039166", false, false), ("::ffff:a9fe:a9fe", false, false),
        ("0.0.0.0", false, false), ("0", false, false), ("ff02::1", false, false),
        ("mail.example.com", true, true), ("localhost.example", true, true), ("127.0.0.1.example", true, true),
        ("10.0.0.256", true, true),
    ])
    func aHostMayBeReached(_ host: String, _ isPublic: Bool, _ isAllowed: Bool) {
        let host = Text(host)
        #expect(NetworkPolicy().mayReach(host, isPlaintext: false) == isPublic)
        let wide = NetworkPolicy.ownServers(allowPrivateAddresses: true)
        #expect(wide.mayReach(host, isPlaintext: false) == isAllowed)
        #expect(NetworkPolicy.ownServers(allowPrivateAddresses: false) == NetworkPolicy())
    }

    @Test(arguments: [
        ("http://127.0.0.1:8080/", true), ("http://[::1]/", true), ("http://localhost/", true),
        ("http://10.0.0.1/", false), ("http://8.8.8.8/", false), ("https://10.0.0.1/", true),
        ("https://[fd00::1]:8443/x", true), ("https://169.254.169.254/", false),
    ])
    func plaintextMayReachThisMachineOnly(_ url: String, _ isAllowed: Bool) throws {
        let url = try #require(HTTPURL(Text(url)))
        #expect(NetworkPolicy.ownServers(allowPrivateAddresses: true).mayReach(url) == isAllowed)
    }
}
