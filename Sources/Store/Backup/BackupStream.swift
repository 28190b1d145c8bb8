import Base
public import Crypto
public import Messages

extension Store {
    /// Begins a backup of the store as it is now. `header` describes the backup; the store adds its own part. `key`
    /// authenticates the backup: the same key opens it.
    public func backup(_ header: BackupHeader, key: HMACKey) throws -> BackupStream {
        var header = header
        header.formatVersion = BackupFormat.version
        header.schemaVersion = Schema.version
        header.newestEvent = try read { try $0.newestEvent() }
        return BackupStream(try StoreCopy(of: environment), header: header.encoded(), key: key)
    }
}

/// A backup in the making: pieces of bytes, in order. It holds a snapshot of the store until its last piece was taken,
/// or until the stream is dropped. One caller at a time.
public final class BackupStream: @unchecked Sendable {
    // Unchecked: `next` is called by one thread at a time, one call after the other.
    private enum State: ~Copyable {
        case beginning([UInt8])
        case copying(RunningDigest, dataByteCount: UInt64)
        case ended
    }

    public static let pieceByteCount = 256 * 1024

    private var copy: StoreCopy?
    private let key: HMACKey
    private var state: State

    init(_ copy: StoreCopy, header: [UInt8], key: HMACKey) {
        self.copy = copy
        self.key = key
        self.state = .beginning(BackupFormat.prefix(header: header))
    }

    /// The next piece, which is not empty. It has at most `pieceByteCount` bytes; the trailer is added to the last one.
    /// Nil after the last piece.
    @available(*, noasync, message: "blocks the thread")
    public func next() throws(StoreError) -> [UInt8]? {
        var taken = State.ended
        swap(&taken, &state)
        switch consume taken {
        case .beginning(let prefix):
            var digest = RunningDigest()
            digest.update(prefix)
            state = .copying(digest, dataByteCount: 0)
            return prefix
        case .copying(var digest, let before):
            guard let copy else { return nil }
            var piece = try Self.piece(of: copy)
            digest.update(piece)
            let count = before + UInt64(piece.count)
            if piece.count == Self.pieceByteCount {
                state = .copying(digest, dataByteCount: count)
            } else {
                self.copy = nil
                piece += BackupFormat.trailer(dataByteCount: count, digest: digest.finish(), key: key)
            }
            return piece
        case .ended: return nil
        }
    }

    private static func piece(of copy: StoreCopy) throws(StoreError) -> [UInt8] {
        var error: StoreError?
        let piece = [UInt8](unsafeUninitializedCapacity: pieceByteCount) { buffer, initializedCount in
            do throws(StoreError) {
                initializedCount = try copy.read(into: UnsafeMutableRawBufferPointer(buffer))
            } catch let failure {
                error = failure
            }
        }
        if let error { throw error }
        return piece
    }
}
