import Glibc

/// Gives `body` memory for key material, which is wiped when `body` returns or throws. At most a few hundred bytes,
/// because it is on the stack.
func withWipedScratch<Result, Failure: Error>(
    byteCount: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
    let outcome: Swift.Result<Result, Failure> = withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 16) {
        scratch in
        defer { if let start = scratch.baseAddress { explicit_bzero(start, scratch.count) } }
        do throws(Failure) { return .success(try body(scratch)) } catch { return .failure(error) }
    }
    return try outcome.get()
}
