import Base
import Testing

@testable import postern

@Suite struct ArgumentsTests {
    private func arguments(_ value: String) -> Arguments { Arguments(values: ["x": value]) }

    @Test func `Values are read as what they are, or refused`() throws {
        #expect(try arguments("true").bool("x") == true)
        #expect(try arguments("false").bool("x") == false)
        #expect(try arguments("true").bool("y") == nil)
        #expect(throws: CommandError.self) { try arguments("yes").bool("x") }
        #expect(try arguments("7").integer("x", in: 1...7) == 7)
        for wrong in ["0", "8", "seven", ""] {
            #expect(throws: CommandError.self) { try arguments(wrong).integer("x", in: 1...7) }
        }
        #expect(try arguments("Skip").choice("x", of: [("fail", 1), ("skip", 2)]) == 2)
        let error = #expect(throws: CommandError.self) { try arguments("skp").choice("x", of: [("skip", 2)]) }
        #expect(error?.hint == "did you mean skip?")
    }

    @Test(
        arguments: [
            ("500ms", .milliseconds(500)), ("30s", .seconds(30)), ("30", .seconds(30)), ("5m", .seconds(300)),
            ("1h", .seconds(3_600)), ("7d", .seconds(604_800)), ("0", .zero),
        ] as [(String, Duration)])
    func `Durations have units`(text: String, duration: Duration) {
        #expect(parseDuration(text) == duration)
    }

    @Test(arguments: ["", "s", "1w", "-1s", "1.5h", "1 h", "99999999999s"])
    func `Other durations are refused`(text: String) {
        #expect(parseDuration(text) == nil)
    }

    @Test func `A fraction of a second is refused where seconds are sent, and 0 where it would mean something else`()
        throws
    {
        #expect(try arguments("2m").wholeSeconds("x") == 120)
        #expect(try arguments("2000ms").wholeSeconds("x") == 2)
        #expect(try arguments("0").wholeSeconds("x") == 0)
        #expect(try arguments("1s").wholeSeconds("y") == nil)
        #expect(try arguments("1s").positiveSeconds("x", unless: "leave it out") == 1)
        #expect(try arguments("1s").positiveSeconds("y", unless: "leave it out") == nil)
        for fraction in ["1ms", "500ms", "1500ms"] {
            #expect(throws: CommandError.self) { try arguments(fraction).wholeSeconds("x") }
            #expect(throws: CommandError.self) { try arguments(fraction).positiveSeconds("x", unless: "") }
        }
        let error = #expect(throws: CommandError.self) { try arguments("0s").positiveSeconds("x", unless: "leave out") }
        #expect(error?.exitCode == .usage && error?.hint == "leave out")
    }

    @Test func `A time is a date, a moment, or how long ago`() throws {
        let now = Timestamp(seconds: 1_800_000_000)
        #expect(try arguments("1h").timestamp("x", now: now) == Timestamp(seconds: 1_800_000_000 - 3_600))
        #expect(try arguments("2027-01-15").timestamp("x", now: now) == Timestamp(seconds: 1_799_971_200))
        #expect(try arguments("2027-01-15T08:00:00Z").timestamp("x", now: now) == now)
        #expect(throws: CommandError.self) { try arguments("yesterday").timestamp("x", now: now) }
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (1_800_000_000_000_000, "2027-01-15T08:00:00Z"),
            (1_800_000_000_000_001, "2027-01-15T08:00:00.000001Z"),
            (951_782_400_500_000, "2000-02-29T00:00:00.500000Z"),
        ] as [(Int64, String)])
    func `Times are printed as RFC 3339 and read back`(microseconds: Int64, text: String) {
        #expect(Timestamp(microseconds: microseconds).rfc3339 == text)
        #expect(Timestamp(rfc3339: text)?.microseconds == microseconds)
    }

    @Test(
        arguments: [
            "2027-02-30", "2027-13-01", "2027-1", "2027-01-15T08:00:00", "2027-01-15T25:00:00Z", "2027-01-15T08:00Z",
            "2027-01-15T08:00:00.Z", "2027-01-15T08:00:00.1234567Z", "", "T",
        ])
    func `What is no time is refused`(text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
    }

    /// In requests, 0 and an empty text stand for no condition.
    @Test func `A condition that was given never becomes no condition`() throws {
        let now = Timestamp(seconds: 1_800_000_000)
        #expect(try arguments("1970-01-01").boundMicros("x", now: now) == 1)
        #expect(try arguments("1970-01-02").boundMicros("x", now: now) == 86_400_000_000)
        #expect(try arguments("1970-01-01").boundMicros("y", now: now) == 0)
        #expect(try arguments("a").condition("x") == "a")
        #expect(try arguments("a").condition("y") == .empty)
        #expect(throws: CommandError.self) { try arguments("").condition("x") }
    }

    @Test func `A list that has an empty element does not lift a restriction`() throws {
        #expect(try arguments("a,b").restriction("x") == ["a", "b"])
        #expect(try arguments("").restriction("x") == [])
        #expect(try arguments("a").restriction("y") == nil)
        for wrong in [",", ",,", "a,", ",a", "a,,b"] {
            #expect(throws: CommandError.self) { try arguments(wrong).restriction("x") }
        }
    }

    @Test func `A list with an empty element, or without any, is refused where it would stand for the empty list`()
        throws
    {
        #expect(try arguments("a,b").list("x") == ["a", "b"])
        #expect(try arguments("a").elements("y") == nil)
        #expect(try arguments("none").elementsOrNone("x") == [])
        #expect(try arguments("a,b").elementsOrNone("x") == ["a", "b"])
        for wrong in ["", ",", "a,", ",a", "a,,b"] {
            #expect(throws: CommandError.self) { try arguments(wrong).list("x") }
            #expect(throws: CommandError.self) { try arguments(wrong).elementsOrNone("x") }
        }
    }

    @Test func `A typo is near what was meant, a different word is not`() {
        let words = ["create", "get", "list", "update", "delete"]
        #expect(nearest(to: "craete", in: words) == "create")
        #expect(nearest(to: "updat", in: words) == "update")
        #expect(nearest(to: "frobnicate", in: words) == nil)
    }
}
