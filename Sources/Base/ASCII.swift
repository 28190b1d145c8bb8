/// Classes of ASCII characters, for text that is judged byte by byte. No byte beyond ASCII is in any of them.
extension UInt8 {
    /// 0-9
    @inlinable public var isASCIIDigit: Bool { self >= 0x30 && self <= 0x39 }

    /// A-Z
    @inlinable public var isASCIIUppercase: Bool { self >= 0x41 && self <= 0x5A }

    /// a-z
    @inlinable public var isASCIILowercase: Bool { self >= 0x61 && self <= 0x7A }

    /// A-Z and a-z
    @inlinable public var isASCIILetter: Bool { isASCIIUppercase || isASCIILowercase }

    /// a-z, 0-9 and the hyphen: the characters of a host name's label in lower case ("LDH", RFC 5890 §2.3.1).
    @inlinable public var isLowercaseLDH: Bool { isASCIILowercase || isASCIIDigit || self == UInt8(ascii: "-") }

    /// a-z in the place of A-Z; every other byte is returned as it is.
    @inlinable public var lowercasedASCII: UInt8 { isASCIIUppercase ? self + 0x20 : self }
}

extension Sequence where Element == UInt8 {
    /// The bytes with a-z in the place of A-Z, and nothing else changed.
    @inlinable public var lowercasedASCII: [UInt8] { map { $0.lowercasedASCII } }
}
