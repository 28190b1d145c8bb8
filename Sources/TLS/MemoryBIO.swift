import CTLS

/// Without this callback, OpenSSL would ask on the terminal for the password of an encrypted key.
let refusePassword: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = {
    _, _, _, _ in -1
}

/// Bytes in memory as OpenSSL reads or writes them.
struct MemoryBIO: ~Copyable {
    let pointer: OpaquePointer

    /// Holds a copy of `bytes`, which may be a private key: OpenSSL clears the copy when it frees the BIO.
    init(reading bytes: [UInt8]) throws(TLSError) {
        guard let pointer = BIO_new(BIO_s_secmem()) else { throw .last(of: "BIO_new") }
        guard BIO_write(pointer, bytes, Int32(clamping: bytes.count)) == bytes.count else {
            BIO_free(pointer)
            throw TLSError("no memory for \(bytes.count) bytes")
        }
        self.pointer = pointer
    }

    init() throws(TLSError) {
        guard let pointer = BIO_new(BIO_s_secmem()) else { throw .last(of: "BIO_new") }
        self.pointer = pointer
    }

    /// The objects that `next` reads from a PEM file until it returns nil. Throws when there is no object, there are
    /// more than `countMax`, or an object cannot be read. Errors call the objects `name`.
    static func all<Object>(
        _ name: StaticString, in pem: [UInt8], countMax: Int, _ next: (OpaquePointer) -> Object?
    ) throws(TLSError) -> [Object] {
        TLSLibrary.start
        ERR_clear_error()
        let source = try MemoryBIO(reading: pem)
        var objects: [Object] = []
        while let object = next(source.pointer) {
            objects.append(object)
            guard objects.count <= countMax else { throw TLSError("more than \(countMax) \(name)s") }
        }
        // The end of the file is an error too, PEM_R_NO_START_LINE.
        let isEnd = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE
        guard isEnd else { throw .last(of: "a \(name) cannot be read") }
        ERR_clear_error()
        guard !objects.isEmpty else { throw TLSError("there is no \(name) in it") }
        return objects
    }

    deinit { BIO_free(pointer) }

    /// All bytes that were written to the BIO.
    var bytes: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(pointer))
        let count = BIO_read(pointer, &bytes, Int32(clamping: bytes.count))
        return Array(bytes.prefix(max(0, Int(count))))
    }
}
