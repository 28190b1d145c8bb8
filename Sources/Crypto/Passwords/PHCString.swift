import Base

/// The fields of a `$id$parameters$…` string (PHC string format), which all stored forms have in common.
struct PHCString {
    let fields: [ArraySlice<UInt8>]

    /// Nil if the text does not begin with `$`, is longer than 1024 bytes or has more than 8 fields.
    init?(_ text: Text) {
        guard text.bytes.first == UInt8(ascii: "$"), text.byteCount <= 1024 else { return nil }
        fields = text.bytes.dropFirst().split(
            separator: UInt8(ascii: "$"), maxSplits: 8, omittingEmptySubsequences: false)
        guard fields.count <= 8 else { return nil }
    }

    var id: String { String(decoding: fields[0], as: UTF8.self) }

    /// The values of `a=1,b=2` if the field has exactly these names in this order; nil otherwise.
    static func parameters(_ field: ArraySlice<UInt8>, named names: [String]) -> [Int]? {
        var rest = field
        var values: [Int] = []
        for name in names {
            let name = name.utf8
            guard rest.starts(with: name), rest.dropFirst(name.count).first == UInt8(ascii: "=") else { return nil }
            rest = rest.dropFirst(name.count + 1)
            let end = rest.firstIndex(of: UInt8(ascii: ",")) ?? rest.endIndex
            guard let value = decimal(rest[..<end]) else { return nil }
            values.append(value)
            // A comma follows each value but the last.
            guard (end == rest.endIndex) == (values.count == names.count) else { return nil }
            rest = rest[end...].dropFirst()
        }
        return values
    }

    /// Digits without sign and leading zero, at most nine of them.
    static func decimal(_ digits: ArraySlice<UInt8>) -> Int? {
        guard (1...9).contains(digits.count), digits.count == 1 || digits.first != UInt8(ascii: "0") else { return nil }
        var value = 0
        for digit in digits {
            guard digit.isASCIIDigit else { return nil }
            value = value * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return value
    }

    /// PHC's base64: the standard alphabet without padding. As strict as `Base64`.
    static func decode(_ field: ArraySlice<UInt8>) -> [UInt8]? {
        guard !field.contains(UInt8(ascii: "=")) else { return nil }
        return Base64.standard.decode(field + repeatElement(UInt8(ascii: "="), count: (4 - field.count % 4) % 4))
    }

    static func encode(_ bytes: [UInt8]) -> String {
        String(decoding: Base64.standard.encode(bytes).prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
    }
}
