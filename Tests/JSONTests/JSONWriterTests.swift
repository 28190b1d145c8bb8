import Base
import JSON
import Testing

@Suite struct JSONWriterTests {
    private func text(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }

    @Test func compactJSONHasNoSpaces() {
        let value: JSONValue = ["a": [1, true, .null, []], "b": [:], "c": ["d": .double(0.5)], "e": "x"]
        #expect(text(value) == #"{"a":[1,true,null,[]],"b":{},"c":{"d":0.5},"e":"x"}"#)
    }

    @Test func prettyJSONHasALinePerMember() {
        let value: JSONValue = ["a": [1, 2], "b": [:], "c": ["d": []]]
        #expect(
            String(decoding: value.prettyPrinted(), as: UTF8.self) == """
                {
                  "a": [
                    1,
                    2
                  ],
                  "b": {},
                  "c": {
                    "d": []
                  }
                }
                """)
        #expect(String(decoding: JSONValue.integer(1).prettyPrinted(), as: UTF8.self) == "1")
    }

    @Test func everyCharacterThatMustBeEscapedIs() {
        let controls = (1..<0x20).map { UInt8($0) }
        let value = JSONValue.string(Text(unchecked: controls + [UInt8]("\"\\/\u{7F}é😀".utf8)))
        #expect(
            text(value)
                == #""\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u0008\t\n\u000b\u000c\r\u000e\u000f\u0010\u0011\u0012"#
                + #"\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f\"\\/"#
                + "\u{7F}é😀\"")
        #expect(text(["\"": "\\"]) == #"{"\"":"\\"}"#)
        #expect(text(.string("")) == "\"\"")
    }

    @Test func integersAreWrittenWhole() {
        for value in [0, 1, -1, 9, 10, -10, 1_700_000_000, Int64.max, Int64.min] {
            #expect(text(.integer(value)) == "\(value)")
        }
    }

    @Test func doublesReadBackAsThemselves() throws {
        for value in [0.0, -0.0, 0.1, 1e16, 1e300, .leastNonzeroMagnitude, -2.5, .greatestFiniteMagnitude, 1.0 / 3] {
            #expect(try JSONValue(parsing: JSONValue.double(value).serialized()) == .double(value))
        }
    }

    @Test func aWriterGoesOnAfterGivenBytes() {
        var writer = JSONWriter(appendingTo: [UInt8]("x=".utf8))
        writer.beginObject()
        writer.name("plain")
        writer.string("a\"b")
        writer.name(text: "te\"xt")
        Text("bytes").bytes.withUnsafeBytes { writer.string($0) }
        writer.name("list")
        writer.beginArray()
        writer.integer(1)
        writer.bool(false)
        writer.null()
        writer.endArray()
        writer.endObject()
        #expect(
            String(decoding: writer.bytes, as: UTF8.self)
                == #"x={"plain":"a\"b","te\"xt":"bytes","list":[1,false,null]}"#)
    }
}
