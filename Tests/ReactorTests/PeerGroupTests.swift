import Base
import Testing

@testable import Reactor

@Suite struct PeerGroupTests {
    private func ofIPv6(_ start: [UInt8], _ end: [UInt8] = []) -> Text {
        PeerGroup.ofIPv6(start + [UInt8](repeating: 0, count: 16 - start.count - end.count) + end)
    }

    @Test func `All addresses of a 64 are one peer`() {
        let one = ofIPv6([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 1], [1])
        #expect(one == ofIPv6([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 1], [9, 9, 9, 9, 9, 9, 9, 9]))
        #expect(one != ofIPv6([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 2], [1]))
    }

    @Test func `A mapped address is the address it maps`() {
        #expect(ofIPv6([], [0xFF, 0xFF, 192, 0, 2, 7]) == PeerGroup.ofIPv4([192, 0, 2, 7]))
        #expect(ofIPv6([], [0xFF, 0xFF, 192, 0, 2, 7]) != ofIPv6([], [0xFF, 0xFF, 192, 0, 2, 8]))
    }
}
