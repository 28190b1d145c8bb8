import Base

/// time (µs since 1970, 8 bytes big-endian) ‖ table id ‖ the record's key: rows lie in the order they fall due.
struct ExpiryKey: StoreKey, Hashable {
    var time: UInt64
    var tableID: UInt8
    var key: [UInt8]

    init(time: Timestamp, tableID: UInt8, key: [UInt8]) {
        // Times before 1970 are simply due: an unsigned key would sort them last.
        self.time = UInt64(max(0, time.microseconds))
        self.tableID = tableID
        self.key = key
    }

    init?(stored bytes: UnsafeRawBufferPointer) {
        var reader = KeyReader(bytes)
        guard let time = reader.bigEndian(), let tableID = reader.byte(), !reader.isAtEnd else { return nil }
        self.time = time
        self.tableID = tableID
        self.key = reader.remainder()
    }

    func write(into writer: inout KeyWriter) {
        writer.append(bigEndian: time)
        writer.append(tableID)
        writer.append(contentsOf: key)
    }
}
