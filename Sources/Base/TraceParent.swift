/// The trace that a call belongs to: `traceparent` of W3C Trace Context (level 1, §3.2),
/// `00-<trace id>-<parent id>-<flags>`.
///
/// A later version is read as far as version 00 goes, and sent on as version 00 (§4.3).
public struct TraceParent: Sendable, Equatable {
    private static let byteCount = 55

    /// 32 hexadecimal digits.
    public let traceID: Text
    /// 16 hexadecimal digits: the caller's span.
    public let parentID: Text
    /// Two hexadecimal digits.
    private let flags: Text

    /// Nil for everything that is not exactly of this form: other characters, upper case, all zeroes, version ff.
    public init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.byteCount else { return nil }
        func field(_ range: Range<Int>, mayBeZero: Bool = false) -> Text? {
            let digits = bytes[range]
            let isHex = digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
            guard isHex, mayBeZero || digits.contains(where: { $0 != 0x30 }) else { return nil }
            return Text(unchecked: [UInt8](digits))
        }
        let hyphen = UInt8(ascii: "-")
        guard [2, 35, 52].allSatisfy({ bytes[$0] == hyphen }), let version = field(0..<2, mayBeZero: true),
            version != "ff", let traceID = field(3..<35), let parentID = field(36..<52),
            let flags = field(53..<55, mayBeZero: true)
        else { return nil }
        if bytes.count > Self.byteCount, version == "00" || bytes[Self.byteCount] != hyphen { return nil }
        self.traceID = traceID
        self.parentID = parentID
        self.flags = flags
    }

    /// The header's value for the call's requests to others. The span stays the caller's, because a server makes none.
    public var header: Text {
        let hyphen: [UInt8] = [UInt8(ascii: "-")]
        return Text(unchecked: [UInt8]("00-".utf8) + traceID.bytes + hyphen + parentID.bytes + hyphen + flags.bytes)
    }
}
