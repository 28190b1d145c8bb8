import Glibc

/// Text from outside: well-formed UTF-8 without NUL, compared byte by byte.
///
/// `String ==` is canonical equivalence, so two different byte sequences can be "equal"; identity in Postern is
/// bytes. `Text` is what the wire, the store and every key use; `string` is for people (log, CLI).
public struct Text: Sendable, Hashable, Comparable {
    public let bytes: [UInt8]

    public static var empty: Text { Text(unchecked: []) }

    /// Copies `raw`, or returns nil when it holds a NUL or is not well-formed UTF-8 (RFC 3629: no surrogates, no
    /// over-long forms).
    public init?(validating raw: UnsafeRawBufferPointer) {
        guard UTF8Validation.isText(raw) else { return nil }
        self.bytes = [UInt8](raw)
    }

    /// The same rules over an array.
    public init?(validating bytes: [UInt8]) {
        guard bytes.withUnsafeBytes({ UTF8Validation.isText($0) }) else { return nil }
        self.bytes = bytes
    }

    /// A `String` is UTF-8 already; a NUL in it is our own mistake and traps.
    public init(_ string: String) {
        self.bytes = [UInt8](string.utf8)
        precondition(!bytes.contains(0), "NUL in a Text")
    }

    /// Wraps bytes that this process made itself and knows to be UTF-8 without NUL.
    public init(unchecked bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// All bytes at once: an array of bytes is hashed one by one.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(bytes.count)
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    public var isEmpty: Bool { bytes.isEmpty }
    public var byteCount: Int { bytes.count }

    /// For people: log lines, CLI output, JSON. Never for comparing.
    public var string: String { String(decoding: bytes, as: UTF8.self) }

    public static func < (left: Text, right: Text) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}

extension Text: ExpressibleByStringLiteral, CustomStringConvertible {
    public init(stringLiteral value: StaticString) {
        self.init(unchecked: value.withUTF8Buffer { [UInt8]($0) })
    }

    public var description: String { string }
}

extension Text {
    /// Whether the bytes of `part` occur in the text. (Searching a `String` would link the regular expression engine.)
    public func contains(_ part: StaticString) -> Bool {
        part.withUTF8Buffer { part in
            bytes.withUnsafeBytes { $0.holds(UnsafeRawBufferPointer(part)) }
        }
    }
}

extension UnsafeRawBufferPointer {
    /// The index of the first byte equal to `byte`, at `start` or after it. Nil if there is none.
    public func place(of byte: UInt8, from start: Int) -> Int? {
        guard start < count, let base = baseAddress,
            let found = memchr(base + start, Int32(byte), count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }

    /// Whether the bytes of `part` occur.
    fileprivate func holds(_ part: UnsafeRawBufferPointer) -> Bool {
        guard let first = part.first else { return true }
        var start = 0
        while let found = place(of: first, from: start), count - found >= part.count {
            if UnsafeRawBufferPointer(rebasing: self[found..<found + part.count]).hasSameBytes(as: part) { return true }
            start = found + 1
        }
        return false
    }
}

extension UnsafeRawBufferPointer {
    /// Whether both hold the same bytes. For secrets, use `constantTimeEqual`.
    ///
    /// Inlined up to the comparison of lengths, in which most names differ.
    @inlinable
    public func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        count == other.count && hasSameContent(as: other)
    }

    /// `other` has the same length.
    @usableFromInline
    func hasSameContent(as other: UnsafeRawBufferPointer) -> Bool {
        guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
        return memcmp(base, otherBase, count) == 0
    }
}
