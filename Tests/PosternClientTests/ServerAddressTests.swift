import Base
import Testing

@testable import PosternClient

@Suite struct ServerAddressTests {
    @Test func `Several addresses stand with commas between them, and each counts once`() throws {
        let list = try ServerAddress.list(parsing: "a:1, [::1]:2,127.0.0.1:3,a:1", countMax: 3)
        #expect(list.map(\.host) == ["a", "::1", "127.0.0.1"])
        #expect(list.map(\.port) == ["1", "2", "3"])
        #expect(list.map { $0.numeric != nil } == [false, true, true])
    }

    @Test(arguments: ["a:1,", ",a:1", "a:1,,b:2", "a:1;b:2", "a:1,b"])
    func `A list with an address that is none is refused`(text: String) {
        let failure = #expect(throws: Failure.self) { try ServerAddress.list(parsing: text, countMax: 16) }
        #expect(failure?.reason == "INVALID_ADDRESS")
    }

    @Test func `A list has so many servers at most`() throws {
        let max = Limits().channelServersMax
        let addresses = (1...max + 1).map { "127.0.0.1:\($0)" }
        let list = try ServerAddress.list(parsing: addresses.dropLast().joined(separator: ","), countMax: max)
        #expect(list.count == max)
        #expect(throws: Failure.self) {
            try Channel(address: addresses.joined(separator: ","), credentials: .none)
        }
    }
}
