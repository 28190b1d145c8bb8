import Base

/// The spelling of the domain of an address that enters an account. Pure.
///
/// A domain that resolvers take for another one would give one mailbox two accounts (decision 0154). Refused are
/// a dot at the end, empty labels, hyphens at the ends of a label, ASCII labels above 63 bytes and domains above 253
/// (RFC 1035 §2.3.4), and where international addresses are taken, the encoded form of their labels (`xn--`).
enum EmailDomain {
    static func isAcceptable(in canonical: Text, mayBeEncoded: Bool) -> Bool {
        let domain = canonical.bytes.drop { $0 != UInt8(ascii: "@") }.dropFirst()
        guard domain.count <= 253 else { return false }
        return domain.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
            isAcceptable(label: label) && (mayBeEncoded || !label.starts(with: "xn--".utf8))
        }
    }

    private static func isAcceptable(label: ArraySlice<UInt8>) -> Bool {
        let hyphen = UInt8(ascii: "-")
        guard let first = label.first, let last = label.last, first != hyphen, last != hyphen else { return false }
        // An international label may be shorter once it is encoded.
        return label.count <= 63 || label.contains { $0 >= 0x80 }
    }
}
