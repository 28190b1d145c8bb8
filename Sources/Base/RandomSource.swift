/// A source of random bytes: the operating system's generator, or a seeded generator in a test.
public struct RandomSource: Sendable {
    private let fillBuffer: @Sendable (UnsafeMutableRawBufferPointer) -> Void

    public init(_ fill: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void) { self.fillBuffer = fill }

    public func fill(_ buffer: UnsafeMutableRawBufferPointer) { fillBuffer(buffer) }

    public func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
            fillBuffer(UnsafeMutableRawBufferPointer(buffer))
            initializedCount = count
        }
    }

    /// `count` characters of [A-Za-z0-9], each equally likely: uids, tenant ids, enrolment ids.
    public func alphanumeric(_ count: Int, lowercase: Bool = false) -> Text {
        let alphabet = lowercase ? Self.lowercaseAlphabet : Self.mixedAlphabet
        let limit = 256 - 256 % alphabet.count
        var characters: [UInt8] = []
        characters.reserveCapacity(count)
        while characters.count < count {
            // A few more than are needed: some bytes are above the limit.
            for byte in bytes(count + count / 4 + 4) where Int(byte) < limit && characters.count < count {
                characters.append(alphabet[Int(byte) % alphabet.count])
            }
        }
        return Text(unchecked: characters)
    }

    private static let lowercaseAlphabet = [UInt8]("abcdefghijklmnopqrstuvwxyz0123456789".utf8)
    private static let mixedAlphabet = [UInt8]("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
}
