import Base

/// The spelling of the domain of an address that enters an account. Pure.
///
/// A domain that resolvers take for another one would give one mailbox two accounts (decision 0154). Refused are
/// a dot at the end, empty labels, hyphens at the ends of a label, ASCII labels above 63 bytes and domains above 253
/// (RFC 1035 §2.3.4), and where international addresses are taken, the encoded form of their labels (`xn--`).
enum EmailDomain {
    static func isAcceptable(in canonical: Text, mayBeEncoded: Bool) -> Bool {
        // Slices, because every new address comes here: splitting would allocate.
        var rest = canonical.bytes.drop { $0 != UInt8(ascii: "@") }.dropFirst()
        guard rest.count <= 253 else { return false }
        while true {
            let end = rest.firstIndex(of: UInt8(ascii: ".")) ?? rest.endIndex
            let label = rest[rest.startIndex..<end]
            guard isAcceptable(label: label), mayBeEncoded || !label.starts(with: "xn--".utf8) else { return false }
            if end == rest.endIndex { return true }
            rest = rest[end...].dropFirst()
        }
    }

    private static func isAcceptable(label: ArraySlice<UInt8>) -> Bool {
        let hyphen = UInt8(ascii: "-")
        guard let first = label.first, let last = label.last, first != hyphen, last != hyphen else { return false }
        // An international label may be shorter once it is encoded.
        return label.count <= 63 || label.contains { $0 >= 0x80 }
    }
}
