// The words after the command's name, checked against the operands and flags of the command.

import Base

/// The operands and flags of one invocation.
struct Arguments: Sendable, Equatable {
    var operands: [String] = []
    var values: [String: String] = [:]
    var switches: Set<String> = []

    func operand(_ index: Int) -> String? { index < operands.count ? operands[index] : nil }

    func value(_ name: String) -> String? { values[name] }

    func text(_ name: String) -> Text? { values[name].map { Text($0) } }

    /// The elements of a list with commas between them. An empty element is refused, and so is an empty value: a
    /// script's variable that is not set, or a value that has only commas, must not stand for the empty list.
    func elements(_ name: String) throws(CommandError) -> [String]? {
        guard let value = values[name] else { return nil }
        let elements = value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard !elements.contains("") else { throw .usage("--\(name) has an empty element: \"\(value)\"") }
        return elements
    }

    func list(_ name: String) throws(CommandError) -> [Text]? {
        guard let elements = try elements(name) else { return nil }
        return elements.map { Text($0) }
    }

    /// The elements of a list of which the word `none` stands for the empty list.
    func elementsOrNone(_ name: String) throws(CommandError) -> [String]? {
        if values[name] == "none" { return [] }
        return try elements(name)
    }

    /// A list of which an empty value stands for the empty list, such as of a restriction that is lifted.
    func restriction(_ name: String) throws(CommandError) -> [Text]? {
        if values[name] == "" { return [] }
        return try list(name)
    }

    func isSet(_ name: String) -> Bool { switches.contains(name) }

    /// `true` or `false`.
    func bool(_ name: String) throws(CommandError) -> Bool? {
        switch values[name] {
        case nil: return nil
        case "true": return true
        case "false": return false
        case let other?: throw .usage("--\(name) is true or false, not \"\(other)\"")
        }
    }

    /// Refuses flags that say something about the value of another flag, `main`, which is not there.
    func check(_ names: [String], need main: String) throws(CommandError) {
        guard values[main] == nil, let name = names.first(where: { values[$0] != nil }) else { return }
        throw .usage("--\(name) needs --\(main)")
    }

    func integer(_ name: String, in range: ClosedRange<Int64>) throws(CommandError) -> Int64? {
        guard let value = values[name] else { return nil }
        guard let number = Int64(value), range.contains(number) else {
            throw .usage(
                "--\(name) is a whole number from \(range.lowerBound) to \(range.upperBound), not \"\(value)\"")
        }
        return number
    }

    /// One of `choices`, by its name.
    func choice<Choice>(_ name: String, of choices: [(String, Choice)]) throws(CommandError) -> Choice? {
        guard let value = values[name] else { return nil }
        guard let choice = choices.first(where: { $0.0 == value.lowercased() }) else {
            let names = choices.map(\.0)
            throw .usage(
                "--\(name) is one of \(names.joined(separator: ", ")), not \"\(value)\"",
                hint: nearest(to: value, in: names).map { "did you mean \($0)?" })
        }
        return choice.1
    }

    func duration(_ name: String) throws(CommandError) -> Duration? {
        guard let value = values[name] else { return nil }
        guard let duration = parseDuration(value) else {
            throw .usage("--\(name) is a number with ms, s, m, h or d, not \"\(value)\"", hint: "for example 30s")
        }
        return duration
    }

    /// The seconds of a duration. A fraction of a second is refused: left out, it would make 0 of half a second, and in
    /// many requests 0 means something else.
    func wholeSeconds(_ name: String) throws(CommandError) -> Int64? {
        guard let duration = try duration(name) else { return nil }
        guard duration.components.attoseconds == 0 else { throw .usage("--\(name) is whole seconds") }
        return duration.components.seconds
    }

    /// The seconds of a duration, for a request in which 0 stands for a duration that was not given. The user who gives
    /// 0 does not mean that: `unless` says how to get it.
    func positiveSeconds(_ name: String, unless hint: String) throws(CommandError) -> Int64? {
        guard let seconds = try wholeSeconds(name) else { return nil }
        guard seconds > 0 else { throw .usage("--\(name) is a second or more", hint: hint) }
        return seconds
    }

    /// A bound of time for a request in which 0 means that there is none. So 1970 becomes the first moment after 0.
    func boundMicros(_ name: String, now: Timestamp) throws(CommandError) -> Int64 {
        try timestamp(name, now: now).map { max(1, $0.microseconds) } ?? 0
    }

    /// A condition for a request in which an empty text means that there is none. An empty value is refused: a variable
    /// of a script that is not set must not select everything.
    func condition(_ name: String) throws(CommandError) -> Text {
        guard let value = values[name] else { return .empty }
        guard !value.isEmpty else { throw .emptyCondition("--\(name)") }
        return Text(value)
    }

    /// A point in time, or how long ago.
    func timestamp(_ name: String, now: Timestamp) throws(CommandError) -> Timestamp? {
        guard let value = values[name] else { return nil }
        if let ago = parseDuration(value) { return now - ago }
        guard let timestamp = Timestamp(rfc3339: value) else {
            throw .usage(
                "--\(name) is a time or how long ago, not \"\(value)\"", hint: "for example 2026-01-31T12:00:00Z or 24h"
            )
        }
        return timestamp
    }
}

/// `500ms`, `30s`, `5m`, `1h`, `7d`; a bare number is seconds.
func parseDuration(_ text: String) -> Duration? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard let number = Int64(digits), number < 1_000_000_000 else { return nil }
    switch text.dropFirst(digits.count) {
    case "ms": return .milliseconds(number)
    case "", "s": return .seconds(number)
    case "m": return .minutes(number)
    case "h": return .hours(number)
    case "d": return .days(number)
    default: return nil
    }
}
