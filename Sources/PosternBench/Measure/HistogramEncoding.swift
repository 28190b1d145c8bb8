// HdrHistogram's V2 encoding (github.com/HdrHistogram/HdrHistogram, AbstractHistogram.encodeIntoByteBuffer): a header
// of 40 bytes, big-endian, then the counters as ZigZag LEB128 numbers. A negative number is a run of empty counters.

import Base

extension Histogram {
    private enum Header {
        static let cookie: UInt32 = 0x1C84_9313
        static let compressedCookie: UInt32 = 0x1C84_9314
        static let byteCount = 40
        /// The smallest value that has a bucket of its own.
        static let lowest: UInt64 = 1
    }

    /// The histogram in the V2 encoding, uncompressed.
    func encoded() -> [UInt8] {
        var payload: [UInt8] = []
        var emptyCount: Int64 = 0
        for count in counts {
            if count == 0 {
                emptyCount += 1
                continue
            }
            if emptyCount > 0 { payload.appendZigZag(-emptyCount) }
            emptyCount = 0
            payload.appendZigZag(Int64(clamping: count))
        }
        var bytes: [UInt8] = []
        bytes.appendBigEndian(Header.cookie)
        bytes.appendBigEndian(UInt32(clamping: payload.count))
        bytes.appendBigEndian(UInt32(0))  // normalizing index offset
        bytes.appendBigEndian(UInt32(Self.significantDigits))
        bytes.appendBigEndian(Header.lowest)
        bytes.appendBigEndian(Self.highest)
        bytes.appendBigEndian(Double(1).bitPattern)  // ratio of whole numbers to doubles
        return bytes + payload
    }

    /// The histogram in the compressed V2 encoding, as HdrHistogram's log files hold it. The zlib stream inside stores
    /// its bytes as they are: the counters are compact already, and no library is needed.
    func encodedForLog() -> [UInt8] {
        let stream = storedZlibStream(of: encoded())
        var bytes: [UInt8] = []
        bytes.appendBigEndian(Header.compressedCookie)
        bytes.appendBigEndian(UInt32(clamping: stream.count))
        return bytes + stream
    }

    /// Nil when the bytes are not a histogram of this program's shape.
    init?(encoded bytes: [UInt8], maximum: UInt64? = nil, mean: Double? = nil) {
        guard bytes.count >= Header.byteCount, bytes.bigEndian32(at: 0) == Header.cookie,
            Int(bytes.bigEndian32(at: 4)) == bytes.count - Header.byteCount, bytes.bigEndian32(at: 8) == 0,
            Int(bytes.bigEndian32(at: 12)) == Self.significantDigits, bytes.bigEndian64(at: 16) == Header.lowest,
            bytes.bigEndian64(at: 24) == Self.highest
        else { return nil }
        var counts = [UInt64](repeating: 0, count: Self.counterCount)
        var total: UInt64 = 0
        var index = 0
        var offset = Header.byteCount
        while offset < bytes.count {
            guard let number = bytes.zigZag(at: &offset) else { return nil }
            if number <= 0 {
                // At most the rest of the counters: no run can make `index` overflow.
                guard number >= -Int64(Self.counterCount - index) else { return nil }
                index += Int(-number)
                continue
            }
            let (sum, overflow) = total.addingReportingOverflow(UInt64(number))
            guard index < Self.counterCount, !overflow else { return nil }
            total = sum
            counts[index] = UInt64(number)
            index += 1
        }
        self.init(counts: counts, maximum: maximum, mean: mean)
    }
}

/// A zlib stream (RFC 1950) of stored blocks (RFC 1951, section 3.2.4).
private func storedZlibStream(of bytes: [UInt8]) -> [UInt8] {
    let blockMax = 0xFFFF
    var stream: [UInt8] = [0x78, 0x01]
    var rest = bytes[...]
    repeat {
        let block = rest.prefix(blockMax)
        rest = rest.dropFirst(block.count)
        stream.append(rest.isEmpty ? 1 : 0)
        let length = UInt16(truncatingIfNeeded: block.count)
        for number in [length, ~length] {
            stream += [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
        }
        stream += block
    } while !rest.isEmpty
    var low: UInt32 = 1
    var high: UInt32 = 0
    for byte in bytes {
        low = (low + UInt32(byte)) % 65_521
        high = (high + low) % 65_521
    }
    stream.appendBigEndian(high << 16 | low)
    return stream
}

extension [UInt8] {
    fileprivate mutating func appendBigEndian(_ number: some FixedWidthInteger) {
        for shift in stride(from: number.bitWidth - 8, through: 0, by: -8) {
            append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    fileprivate func bigEndian32(at offset: Int) -> UInt32 {
        self[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    fileprivate func bigEndian64(at offset: Int) -> UInt64 {
        self[offset..<offset + 8].bigEndianNumber
    }

    /// At most nine bytes; the ninth holds eight bits.
    fileprivate mutating func appendZigZag(_ number: Int64) {
        var rest = UInt64(bitPattern: number << 1 ^ number >> 63)
        for _ in 0..<8 {
            if rest < 0x80 { return append(UInt8(rest)) }
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }

    fileprivate func zigZag(at offset: inout Int) -> Int64? {
        var number: UInt64 = 0
        for position in 0..<9 {
            guard offset < count else { return nil }
            let byte = UInt64(self[offset])
            offset += 1
            guard position < 8 else {
                number |= byte << 56
                break
            }
            number |= (byte & 0x7F) << UInt64(7 * position)
            if byte < 0x80 { break }
        }
        return Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
    }
}
