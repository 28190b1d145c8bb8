import Base
import Testing

@testable import Transport

@Suite struct PeerGroupTests {
    private func of(_ text: String) throws -> Text { PeerGroup.of(try #require(IPAddress(text))) }

    @Test func `All addresses of a 64 are one peer`() throws {
        #expect(try of("2001:db8:0:1::1") == of("2001:db8:0:1:9:9:9:9"))
        #expect(try of("2001:db8:0:1::1") != of("2001:db8:0:2::1"))
    }

    @Test func `A mapped address is the address it maps`() throws {
        #expect(try of("::ffff:192.0.2.7") == of("192.0.2.7"))
        #expect(try of("::ffff:192.0.2.7") != of("::ffff:192.0.2.8"))
    }
}
