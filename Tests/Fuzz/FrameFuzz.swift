// libFuzzer's entry: `tools/fuzz` builds it with Tests/WireTests/FuzzedFrames.swift, which says what is checked.

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    fuzzFrames(UnsafeRawBufferPointer(start: start, count: count))
    return 0
}
