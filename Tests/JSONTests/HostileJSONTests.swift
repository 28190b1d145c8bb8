import Base
import JSON
import Testing

/// What a peer may send to break a parser: every answer is a value or an error, never a trap.
@Suite struct HostileJSONTests {
    private func parse(_ source: String) throws(JSONError) -> JSONValue {
        try JSONValue(parsing: [UInt8](source.utf8))
    }

    private func error(_ source: [UInt8], maxDepth: Int = 16) -> JSONError? {
        do throws(JSONError) {
            _ = try JSONValue(parsing: source, maxDepth: maxDepth)
            return nil
        } catch {
            return error
        }
    }

    private func reason(_ source: String, maxDepth: Int = 16) -> JSONError.Reason? {
        error([UInt8](source.utf8), maxDepth: maxDepth)?.reason
    }

    @Test func everyBeginningOfADocumentIsIncomplete() {
        let document = [UInt8](
            #"{"a":[true,false,null,{"é\u00e9\ud83d\ude00\n":"\"\\"}],"b":-1.5e+3,"c":12}"#.utf8)
        for count in 0..<document.count {
            let error = error(Array(document[..<count]))
            // A cut within "é" leaves invalid UTF-8; the parser finds the end first all the same.
            #expect(error?.reason == .incomplete, "\(count)")
        }
        #expect(error(document) == nil)
    }

    @Test func everyUnicodeScalarMayBeEscapedAndOnlyScalars() throws {
        let wrong = (UInt16.min ... .max).filter { unit in
            let digits = String(unit, radix: 16)
            let source = "\"\\u" + String(repeating: "0", count: 4 - digits.count) + digits + "\""
            let expected = unit == 0 ? nil : Unicode.Scalar(unit).map { Array(String(Character($0)).utf8) }
            return (try? parse(source))?.text?.bytes != expected
        }
        #expect(wrong.isEmpty)
    }

    @Test func surrogatesMakePairsOrNothing() throws {
        #expect(try parse(#""\ud800\udc00""#).text == "\u{10000}")
        #expect(try parse(#""\uDBFF\uDFFF""#).text == "\u{10FFFF}")
        for wrong in [
            #""\ud800""#, #""\ud800x""#, #""\ud800\n""#, #""\ud800\u0041""#, #""\ud800\ud800""#, #""\udc00""#,
            #""\udc00\ud800""#, #""\ud83d\\ude00""#, #""\ud83d \ude00""#,
        ] {
            #expect(reason(wrong) == .malformed, "\(wrong)")
        }
        #expect(reason(#""\ud800\u"#) == .incomplete)
        #expect(reason(#""\u00g0""#) == .malformed)
        #expect(reason(#""\u-001""#) == .malformed)
    }

    @Test func onlyTheEscapesOfTheStandardAreKnown() throws {
        #expect(try parse(#""\"\\\/\b\f\n\r\t""#).text?.bytes == [0x22, 0x5C, 0x2F, 8, 12, 10, 13, 9])
        for letter in UInt8.min ... .max where !"\"\\/bfnrtu".utf8.contains(letter) {
            #expect(error([0x22, 0x5C, letter, 0x22]) != nil, "\(letter)")
        }
    }

    @Test func controlCharactersMustBeEscaped() {
        for control in UInt8.min..<0x20 {
            #expect(error([0x22, control, 0x22])?.reason == (control == 0 ? .containsNUL : .malformed))
            #expect(error([0x22, 0x5C, 0x6E, control, 0x22])?.reason == (control == 0 ? .containsNUL : .malformed))
        }
        #expect(error([0x22, 0x7F, 0x22]) == nil)
    }

    @Test func onlyFourBytesAreWhiteSpace() {
        // A digit would make another number, and a quotation mark a string.
        for byte in UInt8.min ... .max where !"0123456789\"".utf8.contains(byte) {
            let isWhiteSpace = [0x20, 0x09, 0x0A, 0x0D].contains(byte)
            #expect((error([byte, 0x31, byte]) == nil) == isWhiteSpace, "\(byte)")
            #expect((error([0x5B, byte, 0x31, byte, 0x2C, byte, 0x32, byte, 0x5D]) == nil) == isWhiteSpace, "\(byte)")
        }
    }

    @Test func stringsAreUTF8AsTheStandardLibraryUnderstandsIt() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SplitMix64(state: seed)
        let leads: [UInt8] = [0x41, 0x7F, 0x80, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF]
        let trails: [UInt8] = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0]
        for round in 0..<20_000 {
            var content = [leads[Int(random.next() % 14)]]
            for _ in 0..<random.next() % 4 { content.append(trails[Int(random.next() % 9)]) }
            let prefix: [UInt8] = round.isMultiple(of: 2) ? [] : [0x5C, 0x74]
            let value = try? JSONValue(parsing: [0x22] + prefix + content + [0x22])
            let expected = String(validating: (prefix.isEmpty ? [] : [0x09]) + content, as: UTF8.self)
            #expect(value?.string == expected, "\(content)")
        }
    }

    @Test func numbersFollowTheGrammar() throws {
        #expect(try parse("0") == 0)
        #expect(try parse("-0") == 0)
        #expect(try parse("-0.0").double?.sign == .minus)
        #expect(try parse("0e1") == .double(0))
        #expect(try parse("1E+2") == .double(100))
        #expect(try parse("25e-1") == .double(2.5))
        #expect(try parse("[1,-2]") == [1, -2])
        for wrong in [
            "00", "-01", "1.e1", "1.5.5", "1e1.5", "1ee1", "1e+-1", "-+1", "-a", "1_000", "1a", "0x", "inf", "nan",
            "-Infinity", "1.0f", "0b1", "١", "1 2", "- 1", "1 .5", "1. 5", "1e 5",
        ] {
            #expect(reason(wrong) != nil, "\(wrong)")
        }
    }

    @Test func longNumbersFitOrAreRefused() throws {
        let nines = String(repeating: "9", count: 100_000)
        #expect(reason(nines) == .numberOutOfRange)
        #expect(reason("-" + nines) == .numberOutOfRange)
        #expect(reason("18446744073709551616") == .numberOutOfRange)
        #expect(reason("1e" + nines) == .numberOutOfRange)
        #expect(reason("-1e400") == .numberOutOfRange)
        #expect(reason(nines + ".0") == .numberOutOfRange)
        #expect(try parse("1e-" + nines) == .double(0))
        #expect(try parse("0." + nines) == .double(1))
        #expect(try parse("0e" + nines) == .double(0))
        #expect(try parse("1.7976931348623157e308") == .double(.greatestFiniteMagnitude))
        #expect(try parse("5e-324") == .double(.leastNonzeroMagnitude))
    }

    @Test(arguments: [1, 15, 16, 17, 18, 500]) func aRepeatedMemberIsFoundWhereverItStands(count: Int) {
        let names = (0..<count).map { "n\($0)" }
        let source = { (names: [String]) in "{" + names.map { "\"\($0)\":{}" }.joined(separator: ",") + "}" }
        #expect(reason(source(names)) == nil)
        for repeated in Set([0, count / 2, count - 1]) {
            #expect(reason(source(names + ["n\(repeated)"])) == .duplicateMember)
            #expect(reason(source([names[repeated]] + names)) == .duplicateMember)
        }
        #expect(reason(source(names + [""])) == nil)
    }

    @Test func theDepthCountsArraysAndObjectsAlike() {
        #expect(reason(#"{"a":[{"b":[]}]}"#, maxDepth: 4) == nil)
        #expect(reason(#"{"a":[{"b":[]}]}"#, maxDepth: 3) == .tooDeep)
        #expect(reason("[[],[],[[]],{}]", maxDepth: 3) == nil)
        let deepest = String(repeating: "[", count: 256) + String(repeating: "]", count: 256)
        #expect(reason(deepest, maxDepth: 256) == nil)
        #expect(reason("[" + deepest + "]", maxDepth: 256) == .tooDeep)
    }

    @Test func nothingMayBeMissingOrTooMuch() {
        for wrong in [
            "[,]", "[1,,2]", "{,}", #"{"a"}"#, #"{"a":}"#, #"{"a",1}"#, #"{"a":1 "b":2}"#, #"{"a":1,}"#, "{1:2}", "[1}",
            #"{"a":1]"#, "nul", "nulll", "trUe", "fals\u{E9}", "{}}", "[]]", "\"\"\"", ":", ",", "{]", "[}",
        ] {
            #expect(reason(wrong) != nil, "\(wrong)")
        }
    }

    @Test func anErrorPointsAtItsLineAndColumn() {
        for (source, reason, line, column) in [
            ("{\n \"a\": 1,\n \"a\": 2}", JSONError.Reason.duplicateMember, 3, 1), ("[1,\n\n x]", .malformed, 3, 1),
            ("{}\n{}", .trailingBytes, 2, 0), ("", .incomplete, 1, 0), ("[\n", .incomplete, 2, 0),
        ] {
            let error = error([UInt8](source.utf8))
            #expect(error?.reason == reason && error?.line == line && error?.column == column, "\(source)")
        }
    }

    @Test func noInputTraps() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SplitMix64(state: seed)
        let origins = [
            #"{"iss":"https://x","aud":["a","b"],"exp":1700000000,"d":-1.5e3,"f":{"t":true,"\u00e9x":"\ud83d\ude00"}}"#,
            #"[[[[[1,2.5e-7,-0],{"é":null}],"\"\\\/\b"],false],184467]"#, #""\ud800\udc00\u0001""#,
        ].map { [UInt8]($0.utf8) }
        let interesting = [UInt8](#"{}[]",:\u0eE-+.09 9tfn"#.utf8) + [0, 0x0A, 0x1F, 0x80, 0xC3, 0xED, 0xF4, 0xFF]
        var readCount = 0
        for _ in 0..<200_000 {
            var bytes = origins[Int(random.next() % 3)]
            for _ in 0...random.next() % 4 where !bytes.isEmpty {
                let index = Int(random.next() % UInt64(bytes.count))
                switch random.next() % 5 {
                case 0: bytes[index] = UInt8(truncatingIfNeeded: random.next())
                case 1: bytes.remove(at: index)
                case 2: bytes.insert(interesting[Int(random.next() % UInt64(interesting.count))], at: index)
                case 3: bytes.removeSubrange(index...)
                default: bytes[index] = interesting[Int(random.next() % UInt64(interesting.count))]
                }
            }
            if (try? JSONValue(parsing: bytes)) != nil { readCount += 1 }
        }
        #expect(readCount > 1_000, "the mutations leave too little to read")
    }
}

private struct SplitMix64 {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
