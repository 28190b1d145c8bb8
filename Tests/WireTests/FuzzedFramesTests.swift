import Glibc
import Testing

@Suite struct FuzzedFramesTests {
    @Test(arguments: corpus()) func `What the fuzzer found interesting is handled without a trap`(path: String) throws {
        let bytes = try #require(Self.contents(path))
        bytes.withUnsafeBytes { fuzzFrames($0) }
    }

    @Test func `The corpus is there`() {
        #expect(Self.corpus().count > 10)
    }

    @Test func `Inputs of no and of one byte are handled`() {
        fuzzFrames(UnsafeRawBufferPointer(start: nil, count: 0))
        for byte in UInt8.min...UInt8.max { [byte].withUnsafeBytes { fuzzFrames($0) } }
    }

    private static func corpus(testFile: String = #filePath) -> [String] {
        let tests = testFile.split(separator: "/").dropLast(2).joined(separator: "/")
        let folder = "/\(tests)/Fixtures/fuzz-corpus/frame"
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var paths: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            if !name.hasPrefix(".") { paths.append("\(folder)/\(name)") }
        }
        return paths.sorted()
    }

    private static func contents(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "rb") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        return Array(bytes[..<count])
    }
}
