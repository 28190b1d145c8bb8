import Base
import Testing

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("1.1.1.1", IPAddress.Reach.global), ("8.8.8.8", .global), ("172.32.0.1", .global), ("172.15.255.255", .global),
        ("100.63.255.255", .global), ("100.128.0.0", .global), ("223.255.255.255", .global), ("11.0.0.0", .global),
        ("10.0.0.1", .privateNetwork), ("172.16.0.1", .privateNetwork), ("172.31.255.255", .privateNetwork),
        ("192.168.1.1", .privateNetwork), ("100.64.0.1", .privateNetwork), ("100.127.255.255", .privateNetwork),
        ("127.0.0.1", .loopback), ("127.255.255.255", .loopback), ("0.0.0.0", .special), ("0.1.2.3", .special),
        ("169.254.169.254", .special), ("192.0.0.1", .special), ("192.0.2.1", .special), ("192.88.99.1", .special),
        ("198.18.0.1", .special), ("198.19.255.255", .special), ("198.51.100.1", .special), ("203.0.113.1", .special),
        ("224.0.0.1", .special), ("239.255.255.255", .special), ("240.0.0.1", .special), ("255.255.255.255", .special),
        ("2606:4700::1111", .global), ("2001:4860:4860::8888", .global), ("2001:200::1", .global),
        ("::1", .loopback), ("::", .special), ("::2", .special), ("::127.0.0.1", .special),
        ("fc00::1", .privateNetwork),
        ("fdff::1", .privateNetwork), ("fe80::1", .special), ("fec0::1", .special), ("ff02::1", .special),
        ("2001:db8::1", .special), ("2001::1", .special), ("2001:1ff::1", .special), ("100::1", .special),
        ("::ffff:127.0.0.1", .loopback), ("::ffff:10.0.0.1", .privateNetwork), ("::ffff:169.254.169.254", .special),
        ("::ffff:8.8.8.8", .global), ("64:ff9b::7f00:1", .loopback), ("64:ff9b::a9fe:a9fe", .special),
        ("64:ff9b:1::1", .special), ("2002:7f00:1::", .loopback), ("2002:a00:1::", .privateNetwork),
        ("3fff::1", .special), ("3fff:fff::1", .special), ("3fff:1000::1", .global), ("4000::1", .special),
        // The metadata services of clouds, and their neighbours.
        ("100.100.100.200", .special), ("100.100.100.199", .privateNetwork), ("100.100.100.201", .privateNetwork),
        ("168.63.129.16", .special), ("168.63.129.15", .global), ("168.63.129.17", .global),
        ("::ffff:100.100.100.200", .special), ("64:ff9b::6464:64c8", .special), ("2002:6464:64c8::", .special),
        ("fd00:ec2::254", .special), ("fd00:ec2::23", .special), ("fd00:ec1::254", .privateNetwork),
        ("fd00:ec3::254", .privateNetwork), ("fd20:ce::254", .special), ("fd20:ce::253", .privateNetwork),
        ("fd00:c1::a9fe:a9fe", .special), ("fd00:a9fe:a9fe::1", .special), ("fd00:42::42", .special),
        ("fd00:42::43", .privateNetwork),
    ])
    func anAddressReaches(_ text: String, _ reach: IPAddress.Reach) throws {
        #expect(try #require(IPAddress(text)).reach == reach)
    }

    @Test func aNameIsLookedUp() {
        #expect(IPAddress.lookUp("127.0.0.1", countMax: 8) == [IPAddress("127.0.0.1")])
        #expect(IPAddress.lookUp("::1", countMax: 8) == [IPAddress("::1")])
        #expect(IPAddress.lookUp("127.0.0.1", countMax: 0).isEmpty)
        // A name with two dots in a row is none.
        #expect(IPAddress.lookUp("a..b", countMax: 8).isEmpty)
    }

    @Test(arguments: ["", "localhost", "1.2.3", "127.1", "0x7f.0.0.1", "::1%lo", "1.2.3.4.5"])
    func whatIsNoAddressIsNone(_ text: String) {
        #expect(IPAddress(text) == nil)
    }
}
