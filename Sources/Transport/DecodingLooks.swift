/// When a connection that decodes looks at the clock. A value.
///
/// A small request takes hardly longer than thirty looks, so the clock is read for every fourth frame only. A request
/// that is long, or whose answer is, may take a hundred times as long: it brings the next look forward.
struct DecodingLooks {
    private static let frameCountMax = 4
    private static let inputByteCountMax = 1_024
    private static let outputByteCountMax = 8 * 1_024

    private var frameCount = 0
    /// The bytes that waited at the last look.
    private var inputByteCount: Int
    private var outputByteCount: Int

    init(inputByteCount: Int, outputByteCount: Int) {
        self.inputByteCount = inputByteCount
        self.outputByteCount = outputByteCount
    }

    /// Whether to look now. To be asked after each frame, with the bytes of input that are left, and the bytes of
    /// output that wait.
    @inline(__always)
    mutating func isDue(inputByteCount: Int, outputByteCount: Int) -> Bool {
        frameCount += 1
        guard
            frameCount >= Self.frameCountMax || self.inputByteCount - inputByteCount > Self.inputByteCountMax
                || outputByteCount - self.outputByteCount > Self.outputByteCountMax
        else { return false }
        self = DecodingLooks(inputByteCount: inputByteCount, outputByteCount: outputByteCount)
        return true
    }
}
