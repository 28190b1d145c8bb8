import Base

extension Secret {
    /// The bytes as C's `char`, not NUL-terminated; the pointer is never null.
    func withCharacters<Result>(_ body: (UnsafePointer<CChar>, Int) -> Result) -> Result {
        withBytes { bytes in
            guard let start = bytes.baseAddress, bytes.count > 0 else {
                var nothing: CChar = 0
                return body(&nothing, 0)
            }
            return body(start.assumingMemoryBound(to: CChar.self), bytes.count)
        }
    }
}
