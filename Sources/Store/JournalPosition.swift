public import Base

/// A place in the journal of a cluster, as callers carry it from one node to another.
///
/// Its text is `<the cluster's id, 32 hexadecimal digits>.<number of the entry>`.
public struct JournalPosition: Sendable, Equatable {
    public let clusterID: [UInt8]
    public let number: UInt64

    public init(clusterID: [UInt8], number: UInt64) { (self.clusterID, self.number) = (clusterID, number) }

    /// Nil for bytes that do not have the form of `text`.
    public init?(_ text: UnsafeRawBufferPointer) {
        let idByteCount = 2 * JournalPlace.clusterIDByteCount
        // 20 digits are the most of a UInt64.
        guard (idByteCount + 2...idByteCount + 21).contains(text.count), text[idByteCount] == UInt8(ascii: "."),
            let clusterID = Hex.decode(UnsafeRawBufferPointer(rebasing: text[..<idByteCount]))
        else { return nil }
        var number: UInt64 = 0
        for digit in text[(idByteCount + 1)...] {
            guard digit.isASCIIDigit else { return nil }
            let (tens, isTooMuch) = number.multipliedReportingOverflow(by: 10)
            // Proof: it is a digit.
            let (sum, isMore) = tens.addingReportingOverflow(UInt64(digit - UInt8(ascii: "0")))
            if isTooMuch || isMore { return nil }
            number = sum
        }
        self.init(clusterID: clusterID, number: number)
    }

    public var text: Text { Text("\(Hex.encode(clusterID)).\(number)") }
}
