import Base
import JSON
import Testing

@Suite struct JSONParserTests {
    private func parse(_ source: String, maxDepth: Int = 16) throws(JSONError) -> JSONValue {
        try JSONValue(parsing: [UInt8](source.utf8), maxDepth: maxDepth)
    }

    private func reason(_ source: [UInt8], maxDepth: Int = 16) -> JSONError.Reason? {
        do throws(JSONError) {
            _ = try JSONValue(parsing: source, maxDepth: maxDepth)
            return nil
        } catch {
            return error.reason
        }
    }

    private func reason(_ source: String, maxDepth: Int = 16) -> JSONError.Reason? {
        reason([UInt8](source.utf8), maxDepth: maxDepth)
    }

    @Test func everyKindOfValueIsRead() throws {
        let value = try parse(#" {"n":null,"t":true,"f":false,"i":-7,"d":2.5,"s":"é\u00e9\n","a":[1,[]],"o":{}} "#)
        #expect(
            value == [
                "n": .null, "t": true, "f": false, "i": -7, "d": .double(2.5), "s": "éé\n", "a": [1, []], "o": [:],
            ])
    }

    @Test func anyValueMayStandAlone() throws {
        #expect(try parse("null").isNull)
        #expect(try parse(" 3").integer == 3)
        #expect(try parse(#""x""#).text == "x")
    }

    @Test func aMemberIsFoundByItsWholeName() throws {
        let value = try parse(#"{"a":1,"ab":2,"":3,"ä":4}"#)
        for (name, number) in [("a", 1), ("ab", 2), ("", 3), ("ä", 4)] as [(StaticString, Int64)] {
            #expect(value.member(name) == .integer(number))
            #expect(value[Text("\(name)")] == .integer(number))
        }
        #expect(value.member("b") == nil && value.member("abc") == nil)
        #expect(JSONValue.array([value]).member("a") == nil)
    }

    @Test func membersKeepTheirOrder() throws {
        let names = (0..<50).map { "m\(($0 * 37) % 50)" }
        let source = "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        #expect(try parse(source).object?.map(\.name.string) == names)
    }

    @Test func accessorsAnswerNilForOtherKinds() throws {
        let value = try parse(#"{"i":1,"d":1.0}"#)
        #expect(value["i"]?.integer == 1)
        #expect(value["i"]?.double == 1)
        #expect(value["d"]?.integer == nil)
        #expect(value["d"]?.double == 1)
        #expect(value["x"] == nil)
        #expect(value.string == nil && value.array == nil && value.bool == nil)
        #expect(JSONValue.null["i"] == nil)
    }

    @Test func namesAndStringsAreComparedByBytes() throws {
        // "é" composed and decomposed: the same String, but two texts.
        let value = try parse("{\"\u{E9}\":1,\"e\u{301}\":2}")
        #expect(value[Text("\u{E9}")]?.integer == 1)
        #expect(value[Text("e\u{301}")]?.integer == 2)
        #expect(try parse("\"\u{E9}\"") != parse("\"e\u{301}\""))
    }

    @Test func aRepeatedMemberIsRefused() {
        #expect(reason(#"{"aud":"a","aud":"b"}"#) == .duplicateMember)
        #expect(reason(#"{"a":{"b":1,"\u0062":2}}"#) == .duplicateMember)
    }

    @Test func onlyOneValueIsAllowed() {
        #expect(reason("{} {}") == .trailingBytes)
        #expect(reason("1,") == .trailingBytes)
        #expect(reason([UInt8]("{}".utf8) + [0]) != nil)
        #expect(reason("") == .incomplete)
        #expect(reason("   ") == .incomplete)
    }

    @Test func nulIsRefusedInEveryForm() {
        #expect(reason(#""a\u0000b""#) == .containsNUL)
        #expect(reason(#"{"a\u0000b":1}"#) == .containsNUL)
        #expect(reason([0x22, 0x00, 0x22]) != nil)
    }

    @Test func numbersThatDoNotFitAreRefused() throws {
        #expect(try parse("9223372036854775807").integer == .max)
        #expect(try parse("-9223372036854775808").integer == .min)
        #expect(reason("9223372036854775808") == .numberOutOfRange)
        #expect(reason("-9223372036854775809") == .numberOutOfRange)
        #expect(reason("9e99") == nil)
        #expect(reason("1e999") == .numberOutOfRange)
        for wrong in ["01", "+1", "1.", ".5", "0x10", "NaN", "Infinity", "-", "1e", "--1"] {
            #expect(reason(wrong) != nil, "\(wrong)")
        }
    }

    @Test func lenientSpellingsAreRefused() {
        for wrong in [
            "[1,]", "{\"a\":1,}", "{a:1}", "{'a':1}", "// x\n1", "/* */1", "\u{FEFF}1", "True", "[1 2]", "{\"a\" 1}",
            "\"\\x41\"", "\"\t\"", "\"\\ud800\"", "\"\\udc00\\ud800\"", "]", "{", "[", "\"", "\"\\", "[\"\\u12\"]",
        ] {
            #expect(reason(wrong) != nil, "\(wrong)")
        }
    }

    @Test func onlyUTF8IsText() throws {
        #expect(reason([0x22, 0xFF, 0x22]) == .notUTF8)
        #expect(reason([0x22, 0xC0, 0x80, 0x22]) == .notUTF8)
        #expect(reason([0x22, 0xED, 0xA0, 0x80, 0x22]) == .notUTF8)
        #expect(try parse(#""\ud83d\ude00""#).text == "😀")
    }

    @Test func theDepthIsBoundedBeforeParsing() {
        func nested(_ count: Int) -> String {
            String(repeating: "[", count: count) + String(repeating: "]", count: count)
        }
        #expect(reason(nested(16)) == nil)
        #expect(reason(nested(17)) == .tooDeep)
        #expect(reason(String(repeating: "[", count: 1_000_000)) == .tooDeep)
        #expect(reason(String(repeating: "{\"a\":", count: 100_000)) == .tooDeep)
        #expect(reason("[[1]]", maxDepth: 2) == nil)
        #expect(reason("[[1]]", maxDepth: 1) == .tooDeep)
        #expect(reason("1", maxDepth: 0) == nil)
    }

    @Test func bracketsInStringsAreNoDepth() {
        #expect(reason(#"["[[[[\"[[[[", "\\"]"#, maxDepth: 1) == nil)
        #expect(reason(#"["\\",[]]"#, maxDepth: 1) == .tooDeep)
    }

    @Test func anErrorSaysWhereAndHoldsNoInput() {
        let error = #expect(throws: JSONError.self) { _ = try parse("{\n  \"secret\": hunter2\n}") }
        #expect(error?.line == 2)
        #expect(error.map { "\($0)".contains("hunter2") } == false)
        let deep = #expect(throws: JSONError.self) { _ = try parse("[\n [[", maxDepth: 2) }
        #expect(deep?.reason == .tooDeep && deep?.line == 2 && deep?.column == 2)
    }

    @Test func mutatedInputIsReadOrRefusedButNeverTraps() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SplitMix(state: seed)
        let origin = [UInt8](
            #"{"iss":"https://x","aud":["a","b"],"exp":17,"d":-1.5e3,"f":{"t":true,"é":null,"\u00e9":"\ud83d\ude00"}}"#
                .utf8)
        let interesting = [UInt8](#"{}[]",:\u0eE-+.09 "#.utf8) + [0, 0x0A, 0x7F, 0x80, 0xC3, 0xED, 0xF4, 0xFF]
        var parsedCount = 0
        for _ in 0..<20_000 {
            var bytes = origin
            for _ in 0...Int(random.next() % 4) {
                let index = Int(random.next() % UInt64(bytes.count))
                switch random.next() % 4 {
                case 0: bytes[index] = UInt8(truncatingIfNeeded: random.next())
                case 1: bytes.remove(at: index)
                case 2: bytes.insert(interesting[Int(random.next() % UInt64(interesting.count))], at: index)
                default: bytes[index] = interesting[Int(random.next() % UInt64(interesting.count))]
                }
            }
            guard let value = try? JSONValue(parsing: bytes) else { continue }
            parsedCount += 1
            #expect((try? JSONValue(parsing: value.serialized())) == value)
            #expect((try? JSONValue(parsing: value.prettyPrinted())) == value)
        }
        #expect(parsedCount > 0)
    }
}

private struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
