import Base

extension JSONParser {
    /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`: an integer if there is no fraction and no exponent.
    mutating func number() throws(JSONError) -> JSONValue {
        let start = index
        let isNegative = skipInNumber(UInt8(ascii: "-"))
        let wholeStart = index
        let magnitude = try digits()
        guard index == wholeStart + 1 || bytes[wholeStart] != UInt8(ascii: "0") else {
            throw failure(.malformed, at: wholeStart)
        }
        var isInteger = true
        if skipInNumber(UInt8(ascii: ".")) {
            isInteger = false
            _ = try digits()
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            isInteger = false
            index += 1
            if !skipInNumber(UInt8(ascii: "+")) { _ = skipInNumber(UInt8(ascii: "-")) }
            _ = try digits()
        }
        guard isInteger else { return .double(try double(from: start)) }
        guard let magnitude, let value = Self.integer(magnitude, isNegative: isNegative) else {
            throw failure(.numberOutOfRange, at: start)
        }
        return .integer(value)
    }

    /// Reads one digit or more. Returns their value, or nil if it is beyond UInt64.
    private mutating func digits() throws(JSONError) -> UInt64? {
        var value: UInt64? = 0
        let start = index
        while let byte = next, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") {
            value = value.flatMap { value in
                let (tens, isTooLarge) = value.multipliedReportingOverflow(by: 10)
                let (sum, isPast) = tens.addingReportingOverflow(UInt64(byte - UInt8(ascii: "0")))
                return isTooLarge || isPast ? nil : sum
            }
            index += 1
        }
        guard index > start else { throw failure(next == nil ? .incomplete : .malformed) }
        return value
    }

    /// As `skip`, but white space is not skipped, because it ends a number.
    private mutating func skipInNumber(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        index += 1
        return true
    }

    private static func integer(_ magnitude: UInt64, isNegative: Bool) -> Int64? {
        isNegative ? Int64(exactly: -Int128(magnitude)) : Int64(exactly: magnitude)
    }

    /// The grammar was checked, so that none of the standard library's other spellings can come here. A number that is
    /// too small for a Double becomes zero; a number that is too large becomes infinite, and is refused.
    private func double(from start: Int) throws(JSONError) -> Double {
        guard let value = Double(String(decoding: bytes[start..<index], as: UTF8.self)), value.isFinite else {
            throw failure(.numberOutOfRange, at: start)
        }
        return value
    }
}
