import Base
import Testing

@Suite struct TraceParentTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let span = "b7ad6b7169203331"

    private static func read(_ text: String) -> TraceParent? {
        [UInt8](text.utf8).withUnsafeBytes { TraceParent($0) }
    }

    @Test func `What is well formed is read, and sent on as it came`() throws {
        let text = "00-\(Self.trace)-\(Self.span)-01"
        let parent = try #require(Self.read(text))
        #expect(parent.traceID.string == Self.trace)
        #expect(parent.parentID.string == Self.span)
        #expect(parent.header.string == text)
        #expect(Self.read("00-\(Self.trace)-\(Self.span)-00") != nil)
    }

    @Test func `A later version is read as far as version 00 goes`() throws {
        for text in ["cc-\(Self.trace)-\(Self.span)-01", "01-\(Self.trace)-\(Self.span)-01-more"] {
            let parent = try #require(Self.read(text))
            #expect(parent.header.string == "00-\(Self.trace)-\(Self.span)-01")
        }
    }

    @Test(arguments: [
        "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-0", "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01-x",
        "ff-\(trace)-\(span)-01", "0-\(trace)-\(span)-011", "00-\(trace.uppercased())-\(span)-01",
        "00-\(String(repeating: "0", count: 32))-\(span)-01", "00-\(trace)-\(String(repeating: "0", count: 16))-01",
        "00_\(trace)-\(span)-01", "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01", "00-\(trace)-\(span)-0g",
        " 00-\(trace)-\(span)-01", "00-\(trace)-\(span)-0\u{661}", "01-\(trace)-\(span)-01x", "0x-\(trace)-\(span)-01",
        "00-\(trace.dropLast())\n-\(span)-01",
    ])
    func `Everything else is none`(text: String) {
        #expect(Self.read(text) == nil)
    }
}
