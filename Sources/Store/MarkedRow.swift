/// A row of a table with news `.marked`, named by a hash. The hash is quick. Nothing depends on how well it tells rows
/// apart.
struct MarkedRow: Sendable, Equatable {
    let tableID: UInt8
    let hash: UInt64

    init(tableID: UInt8, hash: UInt64) {
        self.tableID = tableID
        self.hash = hash
    }

    init(tableID: UInt8, key: UnsafeRawBufferPointer) {
        // Proof: a table's number has 8 bits.
        var hash = UInt64(tableID) << 32 | UInt64(truncatingIfNeeded: key.count)
        func mix(_ word: UInt64) {
            let product = (hash ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
            hash = product.high ^ product.low
        }
        var rest = key
        while rest.count >= 8 {
            mix(rest.loadUnaligned(as: UInt64.self))
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(8))
        }
        mix(rest.reduce(1) { $0 << 8 | UInt64($1) })
        self.init(tableID: tableID, hash: hash)
    }
}
