import Base

/// The fields of a link's query or of a posted form (application/x-www-form-urlencoded, WHATWG URL §5.1).
///
/// Fields are taken apart and compared as bytes: as a `Character`, an "&" with a combining mark behind it is not "&".
struct FormFields {
    private var values: [Text: Text] = [:]

    /// Reads the fields. A name that occurs again keeps its first value; malformed values are left out.
    init(_ encoded: Substring) {
        for pair in [UInt8](encoded.utf8).split(separator: UInt8(ascii: "&")) {
            guard let equals = pair.firstIndex(of: UInt8(ascii: "=")), let name = Self.decoded(pair[..<equals]),
                values[name] == nil, let value = Self.decoded(pair[(equals + 1)...])
            else { continue }
            values[name] = value
        }
    }

    /// Reads the part of a link behind `?`. Without `?` there are no fields.
    init(ofLink link: String) {
        let query = link.utf8.firstIndex(of: UInt8(ascii: "?")).map { link[link.utf8.index(after: $0)...] } ?? ""
        self.init(Substring(query.utf8.prefix { $0 != UInt8(ascii: "#") }))
    }

    subscript(name: Text) -> String? { values[name]?.string }

    /// Whether the field is there and has exactly these bytes.
    func has(_ name: Text, _ value: String) -> Bool { values[name]?.bytes.elementsEqual(value.utf8) == true }

    /// Whether each of `others` is there and has the same bytes.
    func contains(_ others: FormFields) -> Bool { others.values.allSatisfy { values[$0.key] == $0.value } }

    /// The decoded name or value. Nil: it is malformed, or its bytes are not text.
    private static func decoded(_ encoded: ArraySlice<UInt8>) -> Text? {
        var bytes: [UInt8] = []
        var rest = encoded
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(Hex.value(of:)),
                    let low = rest.popFirst().flatMap(Hex.value(of:))
                else { return nil }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return Text(validating: bytes)
    }
}
