import Base
public import Messages

extension ServerStream where Element == ProjectBackupResponse {
    /// Gives the bytes of a backup to `write`, one piece behind the other, and returns how many there were.
    ///
    /// Throws what the stream and `write` throw, and STREAM_ENDED where the backup was broken off: what was written is
    /// a backup only when this returns.
    public func forEachPiece(_ write: ([UInt8]) async throws -> Void) async throws -> Int64 {
        var byteCount: Int64 = 0
        for try await message in self {
            if !message.data.isEmpty { try await write(message.data) }
            byteCount += Int64(message.data.count)
            if message.byteCount > 0, message.byteCount == byteCount { return byteCount }
        }
        throw Failure(.streamEnded, "The backup was broken off, and is not whole; take another one.")
    }
}
