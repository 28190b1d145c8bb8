import Base
public import Messages

extension ServerStream where Element == ProjectBackupResponse {
    /// Passes the bytes of a backup to `write`, piece by piece, and returns their count.
    ///
    /// Throws the errors of the stream and of `write`, and STREAM_ENDED if the backup was broken off: the written bytes
    /// are a backup only when this method returns.
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
