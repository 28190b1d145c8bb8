public import Base
import CZlib

/// Unpacks gzip data of a peer (RFC 1952), never beyond a bound.
public enum Gunzip {
    public enum GunzipError: Error, Equatable, Sendable {
        /// Not gzip, or cut off, or with bytes after its end.
        case malformed
        /// Unpacked, it has more bytes than the bound.
        case tooLarge
    }

    /// The bytes are unpacked in steps of this size at most, so that a bomb is stopped where it passes the bound.
    private static let stepByteCount = 16 * 1024

    /// Appends the content of `bytes` to `output`; on an error, `output` may hold a part of it.
    public static func unpack(
        _ bytes: UnsafeRawBufferPointer, into output: inout ByteBuffer, byteCountMax: Int
    ) throws(GunzipError) {
        var stream = z_stream()
        guard postern_inflate_gzip_begin(&stream) == Z_OK else { throw .malformed }
        defer { inflateEnd(&stream) }
        // zlib only reads what this points to ("next_in").
        stream.next_in = UnsafeMutablePointer(
            mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.avail_in = UInt32(clamping: bytes.count)
        let start = output.readableByteCount
        while true {
            // One byte beyond the bound tells that there is more.
            let room = byteCountMax + 1 - (output.readableByteCount - start)
            guard room > 0 else { throw .tooLarge }
            let step = min(room, stepByteCount)
            stream.next_out = output.reserve(step).assumingMemoryBound(to: UInt8.self)
            stream.avail_out = UInt32(clamping: step)
            let code = inflate(&stream, Z_NO_FLUSH)
            output.commit(step - Int(stream.avail_out))
            switch code {
            case Z_STREAM_END:
                guard output.readableByteCount - start <= byteCountMax else { throw .tooLarge }
                guard stream.avail_in == 0 else { throw .malformed }
                return
            case Z_OK where stream.avail_out < UInt32(clamping: step) || stream.avail_in > 0: continue
            default: throw .malformed
            }
        }
    }
}
