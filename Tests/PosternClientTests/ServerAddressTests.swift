import Base
import Glibc
import Testing

@testable import PosternClient

@Suite struct ServerAddressTests {
    @Test func `Several addresses stand with commas between them, and each counts once`() throws {
        let list = try ServerAddress.list(parsing: "a:1, [::1]:2,127.0.0.1:3,a:1", countMax: 3)
        #expect(list.map(\.host) == ["a", "::1", "127.0.0.1"])
        #expect(list.map(\.port) == ["1", "2", "3"])
        #expect(list.map { $0.numeric != nil } == [false, true, true])
    }

    @Test func `Lists name the same servers in every notation and order`() throws {
        for (left, right) in [
            ("A.example:1", "a.EXAMPLE:01"), ("127.0.0.1:1", "127.1:1"), ("[::1]:1", "[0:0::1]:1"),
            ("a:1,b:2", "b:2, a:1,A:1"), ("unix:/a", "unix:/a"),
        ] {
            #expect(ServerAddress.isSame(left, right), "\(left) \(right)")
        }
        for (left, right) in [("a:1", "a:2"), ("a:1", "a:1,b:1"), ("unix:/a", "unix:/A"), ("a", "a"), ("a:1", "b:1")] {
            #expect(!ServerAddress.isSame(left, right), "\(left) \(right)")
        }
        #expect(try ServerAddress.list(parsing: "a:1,A:1", countMax: 16).count == 1)
    }

    @Test(arguments: ["a:1,", ",a:1", "a:1,,b:2", "a:1;b:2", "a:1,b"])
    func `A list with an address that is none is refused`(text: String) {
        let failure = #expect(throws: Failure.self) { try ServerAddress.list(parsing: text, countMax: 16) }
        #expect(failure?.reason == "INVALID_ADDRESS")
    }

    @Test func `A list has so many servers at most`() throws {
        let max = Limits().channel.serversMax
        let addresses = (1...max + 1).map { "127.0.0.1:\($0)" }
        let list = try ServerAddress.list(parsing: addresses.dropLast().joined(separator: ","), countMax: max)
        #expect(list.count == max)
        #expect(throws: Failure.self) {
            try Channel(address: addresses.joined(separator: ","), credentials: .none)
        }
    }

    @Test func `A path is an address of its own kind`() throws {
        let address = try ServerAddress(parsing: "unix:/run/postern/rpc.sock")
        #expect(address.path == "/run/postern/rpc.sock" && "\(address)" == "unix:/run/postern/rpc.sock")
        let resolved = try #require(address.numeric)
        #expect(resolved.family == AF_UNIX && resolved.bytes.count == MemoryLayout<sockaddr_un>.size)
        #expect(Array(resolved.bytes[2..<24]) == [UInt8]("/run/postern/rpc.sock".utf8) + [0])
        #expect(try ServerAddress(parsing: "unix.example:1").path == nil)
    }

    @Test func `A path has room for 107 bytes`() throws {
        let longest = "/" + String(repeating: "a", count: 106)
        #expect(try ServerAddress(parsing: "unix:" + longest).numeric?.bytes.last == 0)
        #expect(throws: Failure.self) { try ServerAddress(parsing: "unix:" + longest + "b") }
    }

    @Test(arguments: ["unix:", "unix:rpc.sock", "unix:@name", "unix:/a\u{0}b", "UNIX:/run/a", "unix"])
    func `Other text is refused`(text: String) throws {
        let failure = #expect(throws: Failure.self) { try ServerAddress(parsing: text) }
        #expect(failure?.reason == "INVALID_ADDRESS")
    }
}
