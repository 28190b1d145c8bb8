/// The two spellings of a P-256 signature: 64 bytes r ‖ s in JWS (RFC 7518 §3.4), DER in OpenSSL (RFC 3279 §2.2.3).
enum ECDSASignature {
    static let byteCount = 64
    /// Two integers of at most 33 bytes with their headers, and the sequence's header.
    static let derByteCountMax = 72

    /// The DER form of exactly 64 bytes. OpenSSL checks whether r and s are in range.
    static func der(_ signature: UnsafeRawBufferPointer) -> [UInt8] {
        precondition(signature.count == byteCount, "an ES256 signature of \(signature.count) bytes")
        return DER.sequence(DER.integer(signature[..<32]), DER.integer(signature[32...]))
    }

    /// The 64 bytes of a signature that OpenSSL just made; anything else is our own mistake.
    static func raw(_ der: ArraySlice<UInt8>) -> [UInt8] {
        var rest = der
        precondition(rest.popFirst() == DER.sequenceTag && rest.popFirst().map(Int.init) == rest.count, "no signature")
        var raw: [UInt8] = []
        raw.reserveCapacity(byteCount)
        for _ in 0..<2 {
            precondition(rest.popFirst() == 0x02, "no signature")
            let count = Int(rest.popFirst() ?? 0)
            let digits = rest.prefix(count).drop { $0 == 0 }
            rest = rest.dropFirst(count)
            precondition(digits.count <= 32, "a signature beyond P-256")
            raw.append(contentsOf: repeatElement(0, count: 32 - digits.count))
            raw.append(contentsOf: digits)
        }
        return raw
    }
}
