public import Base
import CZlib

/// Unpacks gzip data of a peer (RFC 1952), never beyond a bound.
public enum Gunzip {
    public enum GunzipError: Error, Equatable, Sendable {
        /// Not gzip, or cut off, or with bytes after its end, or with more blocks than `GzipBlocks` allows.
        case malformed
        /// Unpacked, it has more bytes than the bound.
        case tooLarge
    }

    /// The bytes are unpacked in steps of this size at most, so that a bomb is stopped where it passes the bound.
    private static let stepByteCount = 16 * 1024

    /// Appends the content of `bytes` to `output`; on an error, `output` may hold a part of it.
    ///
    /// The time is bounded as well: `bytes` may have no more blocks than `GzipBlocks` allows.
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
        var blocks = GzipBlocks()
        while true {
            // One byte beyond the bound tells that there is more.
            let room = byteCountMax + 1 - (output.readableByteCount - start)
            guard room > 0 else { throw .tooLarge }
            let step = min(room, stepByteCount)
            stream.next_out = output.reserve(step).assumingMemoryBound(to: UInt8.self)
            stream.avail_out = UInt32(clamping: step)
            let code = inflate(&stream, Z_BLOCK)
            output.commit(step - Int(stream.avail_out))
            if stream.data_type & GzipBlocks.boundary != 0,
                !blocks.mayBegin(in: stream, after: output.readableByteCount - start)
            {
                throw .malformed
            }
            switch code {
            case Z_STREAM_END:
                guard output.readableByteCount - start <= byteCountMax else { throw .tooLarge }
                guard stream.avail_in == 0 else { throw .malformed }
                return
            // It took or made at least one byte.
            case Z_OK: continue
            default: throw .malformed
            }
        }
    }
}

/// Counts the blocks of deflated data (RFC 1951), so that no message takes long.
///
/// A block costs time even if it is empty. A block with codes of its own costs most, up to 5 µs, because its tables
/// have to be made: four megabytes of such blocks, which unpack to nothing, took 0.65 s. Compressors put 16,383
/// symbols of a byte or more into a block; zlib with little memory (memLevel 3), 511. What is accepted takes some 40
/// ms at most; docs/decisions/0137 has the figures.
private struct GzipBlocks {
    /// The bit of `data_type` that is set between two blocks, and the bit that is set in the last one (zlib.h,
    /// "inflate").
    static let boundary: Int32 = 128
    static let last: Int32 = 64

    private var withCodes = 0
    private var others = 0

    /// Counts the block that begins where `stream` stands, after `byteCount` bytes of content. False: the blocks before
    /// it hold too little.
    mutating func mayBegin(in stream: z_stream, after byteCount: Int) -> Bool {
        guard stream.data_type & Self.last == 0, stream.avail_in > 0, let next = stream.next_in else { return true }
        // The block's header begins in the upper bits of the byte before `next`, if some are left ("data_type"). Before
        // the first block, that byte is the end of gzip's header.
        let leftCount = UInt8(truncatingIfNeeded: stream.data_type & 7)
        let bits: UInt8 = (next[-1] >> (8 - leftCount)) | (next[0] << leftCount)
        // The first bit tells whether the block is the last one. 2 in the next two bits: it has codes of its own.
        if (bits >> 1) & 3 == 2 {
            withCodes += 1
            return withCodes <= 64 + byteCount / 512
        }
        others += 1
        return others <= 64 + byteCount / 32
    }
}
