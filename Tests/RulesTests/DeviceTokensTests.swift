import Base
import Crypto
import Messages
import TestSupport
import Testing

@testable import Rules

@Suite struct DeviceTokensTests {
    private let tokens = DeviceTokens(key: HMACKey(Secret([UInt8](repeating: 1, count: 32))))
    private let now = Timestamp(seconds: 1_800_000_000)
    private let ada = User(tenantID: "acme", uid: "ada")
    private let device = DeviceTokens.Device(id: [UInt8](0..<16), hasShownFactor: true)

    private func device(
        in token: Text, tenantID: Text = "acme", uid: Text = "ada", notBefore: Timestamp = .zero,
        at time: Timestamp? = nil
    ) -> DeviceTokens.Device? {
        tokens.device(in: token, tenantID: tenantID, uid: uid, notBefore: notBefore, now: time ?? now)
    }

    @Test func aTokenIsGoodForItsAccountAlone() {
        let token = tokens.token(for: device, user: ada, now: now)
        #expect(token.byteCount == DeviceTokens.textByteCount)
        #expect(device(in: token) == device)
        #expect(device(in: token, tenantID: "") == nil)
        #expect(device(in: token, tenantID: "acmeada", uid: "") == nil)
        #expect(device(in: token, tenantID: "acm", uid: "eada") == nil)
        #expect(device(in: token, uid: "eve") == nil)
        let other = DeviceTokens(key: HMACKey(Secret([UInt8](repeating: 2, count: 32))))
        #expect(other.device(in: token, tenantID: "acme", uid: "ada", notBefore: .zero, now: now) == nil)
    }

    @Test func `It tells whether a second factor was shown, and tokens that cannot tell count as if none was`() throws {
        let marked = tokens.token(for: device, user: ada, now: now)
        #expect(device(in: marked)?.hasShownFactor == true)
        let plain = tokens.token(
            for: DeviceTokens.Device(id: device.id, hasShownFactor: false), user: ada, now: now)
        #expect(device(in: plain) == DeviceTokens.Device(id: device.id, hasShownFactor: false))
        // Made by a server that had no mark.
        let given: Text = "AQABAgMEBQYHCAkKCwwNDg8ABmUXKJiAAGVDcYPNF4jApFdwytcm5Y3gB04AqNVdd9piJeotsfil"
        #expect(plain == given && device(in: given)?.hasShownFactor == false)
        // The mark cannot be added to a token.
        var bytes = try #require(Base64.url.decode(plain.bytes))
        bytes[0] = 2
        #expect(device(in: Text(unchecked: Base64.url.encode(bytes))) == nil)
    }

    @Test func itLasts400DaysAndUntilThePasswordIsChanged() {
        let token = tokens.token(for: device, user: ada, now: now)
        #expect(device(in: token, at: now + .days(400)) != nil)
        #expect(device(in: token, at: now + .days(400) + .microseconds(1)) == nil)
        #expect(device(in: token, notBefore: now) != nil)
        #expect(device(in: token, notBefore: now + .microseconds(1)) == nil)
    }

    @Test func aClockThatWentBackTakesNoDeviceAway() {
        let token = tokens.token(for: device, user: ada, now: now)
        #expect(device(in: token, at: now - .days(30)) == device)
        var changed = ada
        changed.tokensValidAfterMicros = (now + .days(1)).microseconds
        let later = tokens.token(for: device, user: changed, now: now)
        #expect(device(in: later, notBefore: now + .days(1)) == device)
        for time in [Int64.min, -1, 0, .max] {
            let token = tokens.token(for: device, user: ada, now: Timestamp(microseconds: time))
            _ = device(in: token, at: Timestamp(microseconds: ~time))
        }
    }

    /// Every character replaced by every other one, every length: 4,864 + 100 forgeries.
    @Test func noForgeryCounts() {
        let token = tokens.token(for: device, user: ada, now: now)
        let alphabet = [UInt8]("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var count = 0
        for index in token.bytes.indices {
            for byte in alphabet where byte != token.bytes[index] {
                var forged = token.bytes
                forged[index] = byte
                #expect(device(in: Text(unchecked: forged)) == nil)
                count += 1
            }
        }
        #expect(count == token.byteCount * 63)
        for length in 0..<100 where length != token.byteCount {
            let bytes = (token.bytes + token.bytes).prefix(length)
            #expect(device(in: Text(unchecked: Array(bytes))) == nil)
        }
    }
}
