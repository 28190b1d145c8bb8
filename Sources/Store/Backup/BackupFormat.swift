import Base
import Crypto

/// The bytes of a backup:
///
///     magic (8) ‖ length of the header (8, big-endian) ‖ header (BackupHeader)
///     ‖ LMDB data file
///     ‖ its length (8, big-endian) ‖ SHA-256 of all before (32) ‖ HMAC of that digest (32)
///
/// The digest shows damage, even to somebody who does not have the master key. The HMAC shows that nobody else made or
/// changed the backup.
enum BackupFormat {
    static let version: UInt32 = 1
    static let magic = [UInt8]("PSTNBAK1".utf8)
    static let prefixByteCount: UInt64 = 16
    static let headerByteCountMax: UInt64 = 4_096
    /// 8 bytes and two times 32.
    static let trailerByteCount: UInt64 = 72

    static func prefix(header: [UInt8]) -> [UInt8] {
        var bytes = magic
        bytes.append(bigEndian: UInt64(header.count))
        return bytes + header
    }

    static func trailer(dataByteCount: UInt64, digest: [UInt8], key: HMACKey) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: dataByteCount)
        return bytes + digest + key.tag(of: digest)
    }
}
