// The words after the command's name, checked against the operands and flags of the command.

import Base

/// `--name VALUE`, `--name=VALUE` or, without a placeholder, `--name` alone.
struct Flag: Sendable {
    let name: String
    let short: Character?
    /// The word for the value in help. Nil: the flag is a switch.
    let placeholder: String?
    let help: String
    /// Another name, for users who know the flag by it.
    var alias: String?

    /// A switch.
    init(_ name: String, short: Character? = nil, _ help: String) {
        self.init(name: name, short: short, placeholder: nil, help: help)
    }

    init(_ name: String, short: Character? = nil, _ placeholder: String, _ help: String) {
        self.init(name: name, short: short, placeholder: placeholder, help: help)
    }

    private init(name: String, short: Character?, placeholder: String?, help: String) {
        self.name = name
        self.short = short
        self.placeholder = placeholder
        self.help = help
    }

    var usage: String {
        (short.map { "-\($0), " } ?? "    ") + "--\(name)" + (placeholder.map { " \($0)" } ?? "")
    }
}

/// The operands and flags of one invocation.
struct Arguments: Sendable, Equatable {
    var operands: [String] = []
    var values: [String: String] = [:]
    var switches: Set<String> = []

    func operand(_ index: Int) -> String? { index < operands.count ? operands[index] : nil }

    func value(_ name: String) -> String? { values[name] }

    func text(_ name: String) -> Text? { values[name].map { Text($0) } }

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

/// The candidate that a typo most likely meant; nil when none is near.
func nearest(to word: String, in candidates: some Sequence<String>) -> String? {
    let ranked = candidates.map { ($0, editDistance(word, $0)) }
    guard let best = ranked.min(by: { $0.1 < $1.1 }), best.1 <= max(1, word.count / 3) else { return nil }
    return best.0
}

/// The Levenshtein distance, in which a swap of neighbours counts as one.
private func editDistance(_ left: String, _ right: String) -> Int {
    let (left, right) = ([UInt8](left.utf8), [UInt8](right.utf8))
    var rows = [Array(0...right.count)]
    for row in 1..<(left.count + 1) {
        var current = [row]
        for column in 1..<(right.count + 1) {
            let cost = left[row - 1] == right[column - 1] ? 0 : 1
            var best = min(rows[row - 1][column] + 1, current[column - 1] + 1, rows[row - 1][column - 1] + cost)
            if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
                best = min(best, rows[row - 2][column - 2] + 1)
            }
            current.append(best)
        }
        rows.append(current)
    }
    return rows[left.count][right.count]
}
