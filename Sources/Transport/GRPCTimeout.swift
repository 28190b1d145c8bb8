import Base

/// The value of `grpc-timeout`: at most 8 digits and a unit.
enum GRPCTimeout {
    /// The timeout in nanoseconds, at least 1, because 0 means no timeout at all. Nil if the value is not a timeout.
    ///
    /// A timeout is at most 99,999,999 hours, which is more than 64 bits of nanoseconds hold. A longer timeout is cut
    /// to the largest value.
    static func nanoseconds(_ value: UnsafeRawBufferPointer) -> Int64? {
        guard (2...9).contains(value.count), let unit = nanosecondsPerUnit(value[value.count - 1]) else { return nil }
        var number: Int64 = 0
        for byte in value.dropLast() {
            guard byte.isASCIIDigit else { return nil }
            number = number * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        let (product, overflow) = number.multipliedReportingOverflow(by: unit)
        return overflow ? .max : max(product, 1)
    }

    private static func nanosecondsPerUnit(_ unit: UInt8) -> Int64? {
        switch unit {
        case UInt8(ascii: "H"): 3_600_000_000_000
        case UInt8(ascii: "M"): 60_000_000_000
        case UInt8(ascii: "S"): 1_000_000_000
        case UInt8(ascii: "m"): 1_000_000
        case UInt8(ascii: "u"): 1_000
        case UInt8(ascii: "n"): 1
        default: nil
        }
    }
}
