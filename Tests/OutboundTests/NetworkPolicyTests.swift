import Base
import Outbound
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
}
