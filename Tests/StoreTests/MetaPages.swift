/// The two meta pages of a data file, which hold the newest transaction's number.
enum MetaPages {
    static let pageByteCount = 4_096
    private static let transactionOffset = 144

    static func transaction(_ file: [UInt8], _ page: Int) -> UInt64 {
        file.withUnsafeBytes {
            $0.loadUnaligned(fromByteOffset: page * pageByteCount + transactionOffset, as: UInt64.self)
        }
    }

    static func newest(_ file: [UInt8]) -> Int { transaction(file, 1) > transaction(file, 0) ? 1 : 0 }

    static func damage(_ file: inout [UInt8], _ page: Int) { set(&file, page, 0) }

    static func set(_ file: inout [UInt8], _ page: Int, _ number: UInt64) {
        for index in 0..<8 {
            file[page * pageByteCount + transactionOffset + index] = UInt8(truncatingIfNeeded: number >> (8 * index))
        }
    }
}
