import Base
import Glibc
import Testing

@Suite struct SecretTests {
    @Test func aSecretPrintsNothingOfItself() {
        let secret = Secret("correct horse")
        #expect("\(secret)" == "<secret>")
        #expect(String(describing: secret) == "<secret>")
        #expect(String(reflecting: secret) == "<secret>")
        var dumped = ""
        dump(secret, to: &dumped)
        dump(["key": secret], to: &dumped)
        #expect(!dumped.contains("horse"))
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test func itsBytesAreThoseItWasMadeOf() {
        #expect(Secret([1, 2, 3]).withBytes { [UInt8]($0) } == [1, 2, 3])
        #expect(Secret("é").withBytes { [UInt8]($0) } == [0xC3, 0xA9])
        #expect([7, 8].withUnsafeBytes { Secret(copying: $0) }.byteCount == 16)
        #expect(Secret.empty.isEmpty && Secret([]).byteCount == 0)
        #expect(Secret(copying: UnsafeRawBufferPointer(start: nil, count: 0)).isEmpty)
    }

    @Test func secretsAreEqualWhenTheirBytesAre() {
        #expect(Secret("a") == Secret([0x61]))
        #expect(Secret("a") != Secret("b"))
        #expect(Secret("a") != Secret("aa"))
        #expect(Secret.empty == Secret([]))
    }

    @Test func anErrorOfTheBodyComesOut() {
        struct Refused: Error {}
        #expect(throws: Refused.self) { try Secret("a").withBytes { _ throws(Refused) in throw Refused() } }
    }

    @Test func itsMemoryIsWipedWhenItGoes() throws {
        let marker = [UInt8]((0..<512).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 41) })
        var secret: Secret? = Secret(marker)
        let address = try #require(secret?.withBytes { UInt(bitPattern: $0.baseAddress) })
        #expect(memory(at: address, marker.count) == marker)
        secret = nil
        // The allocator may have returned or reused the memory; the secret's bytes must not be there.
        let after = memory(at: address, marker.count)
        #expect(!(0..<marker.count - 16).contains { after.dropFirst($0).starts(with: marker[$0..<$0 + 16]) })
    }

    /// The bytes that are at this address now, read by the kernel: no pointer of ours is followed.
    private func memory(at address: UInt, _ count: Int) -> [UInt8] {
        let file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, readCount in
            readCount = max(0, pread(file, buffer.baseAddress, count, off_t(address)))
        }
    }

    @Test func comparingFindsEverySingleDifference() {
        for count in 0..<40 {
            let bytes = [UInt8]((0..<count).map { UInt8($0) })
            #expect(constantTimeEqual(bytes, bytes))
            #expect(!constantTimeEqual(bytes, bytes + [0]))
            for index in 0..<count {
                for bit in 0..<8 {
                    var other = bytes
                    other[index] ^= 1 << UInt8(bit)
                    if constantTimeEqual(bytes, other) { Issue.record("bit \(bit) of byte \(index) of \(count)") }
                }
            }
        }
    }
}
