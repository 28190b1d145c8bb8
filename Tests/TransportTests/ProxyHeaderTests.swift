import Base
import Testing

@testable import Transport

/// Proxies' headers of every kind, whole and in part.
enum ProxyHeaders {
    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    static func header(_ command: UInt8 = 0x21, _ transport: UInt8, _ payload: [UInt8]) -> [UInt8] {
        signature + [command, transport, UInt8(payload.count >> 8), UInt8(payload.count & 255)] + payload
    }

    /// The header for this IPv4 address, with so many bytes of TLVs behind it.
    static func of(_ address: [UInt8], extra: Int = 0) -> [UInt8] {
        header(0x21, 0x11, address + [192, 0, 2, 1] + [0x30, 0x39, 0x1C, 0xE8] + [UInt8](repeating: 4, count: extra))
    }

    static let local = header(0x20, 0x00, [])
}

@Suite struct ProxyHeaderTests {
    private static let most = Limits().proxyHeaderMax

    private static func read(_ bytes: [UInt8]) -> ProxyHeader { ProxyHeader(bytes, byteCountMax: most) }

    @Test func `A header tells the client's address`() {
        #expect(Self.read(ProxyHeaders.of([203, 0, 113, 9])) == .client(IPAddress("203.0.113.9")!))
        let six = [UInt8](IPAddress("2001:db8::7")!.bytes) + [UInt8](repeating: 1, count: 16) + [0, 1, 0, 2]
        #expect(Self.read(ProxyHeaders.header(0x21, 0x21, six)) == .client(IPAddress("2001:db8::7")!))
    }

    @Test func `A header of the proxy's own, or without an address, tells none`() {
        for header in [
            ProxyHeaders.local, ProxyHeaders.header(0x20, 0x11, [UInt8](repeating: 9, count: 12)),
            ProxyHeaders.header(0x20, 0xFF, [1]), ProxyHeaders.header(0x21, 0x00, []),
            ProxyHeaders.header(0x21, 0x00, [1, 2, 3]),
            ProxyHeaders.header(0x21, 0x31, [UInt8](repeating: 0, count: 216)),
        ] { #expect(Self.read(header) == .proxyItself) }
    }

    @Test func `A part of a header asks for exactly what is missing, and never for more`() {
        for header in [ProxyHeaders.of([203, 0, 113, 9], extra: 40), ProxyHeaders.local] {
            for count in 0..<header.count {
                guard case .incomplete(let missing) = Self.read(Array(header[..<count])) else {
                    Issue.record("\(count)")
                    continue
                }
                #expect(missing > 0 && count + missing <= header.count)
            }
        }
    }

    @Test func `A header has room for so many bytes`() {
        let atLimit = ProxyHeaders.of([203, 0, 113, 9], extra: Self.most - 28)
        #expect(atLimit.count == Self.most && Self.read(atLimit) == .client(IPAddress("203.0.113.9")!))
        let above = ProxyHeaders.of([203, 0, 113, 9], extra: Self.most - 27)
        #expect(Self.read(above) == .malformed(.length))
        #expect(Self.read(Array(above[..<16])) == .malformed(.length), "without waiting for it")
        #expect(Self.read(ProxyHeaders.header(0x20, 0, [UInt8](repeating: 0, count: Self.most))) == .malformed(.length))
    }

    @Test func `What is no header of version 2 is malformed at its first wrong byte`() {
        for text in ["PROXY TCP4 203.0.113.9 192.0.2.1 1 2\r\n", "GET / HTTP/1.1\r\n\r\n", "\r\n\r\n\u{1}"] {
            #expect(Self.read([UInt8](text.utf8)) == .malformed(.signature))
        }
        for index in 0..<12 {
            var wrong = ProxyHeaders.local
            wrong[index] ^= 1
            #expect(Self.read(Array(wrong[...index])) == .malformed(.signature))
        }
        let addresses = [UInt8](repeating: 1, count: 12)
        for command: UInt8 in [0x11, 0x22, 0x01, 0x31, 0xFF] {
            #expect(Self.read(ProxyHeaders.header(command, 0x11, addresses)) == .malformed(.command))
        }
        for transport: UInt8 in [0x12, 0x22, 0x32, 0x10, 0x01, 0x41, 0xFF] {
            #expect(Self.read(ProxyHeaders.header(0x21, transport, addresses)) == .malformed(.transport))
        }
        #expect(Self.read(ProxyHeaders.header(0x21, 0x11, Array(addresses.dropLast()))) == .malformed(.length))
        #expect(Self.read(ProxyHeaders.header(0x21, 0x21, addresses)) == .malformed(.length))
    }
}
