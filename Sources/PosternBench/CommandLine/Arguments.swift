/// The command line is wrong: exit status 1.
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// `--name value`, `--name=value`; each name at most once. `finish` refuses flags that the command did not ask for.
struct Arguments {
    /// Flags that take no value.
    private static let switches: Set<String> = ["--i-own-this", "--markdown"]
    private var values: [String: String] = [:]
    /// The words that are not flags, in their order.
    private(set) var operands: [String] = []
    /// The flags that the command asked for so far, with the default's text: its help has to name them.
    private(set) var asked: [(name: String, standard: String?)] = []

    /// `takingOperands`: words that are no flags, the names of files, may stand among them.
    init(_ arguments: some Sequence<String>, takingOperands: Bool = false) throws(UsageError) {
        var iterator = arguments.makeIterator()
        while let argument = iterator.next() {
            guard argument.hasPrefix("-"), argument.count > 1 else {
                guard takingOperands, argument != "-" else { throw UsageError("\(argument): a flag was expected") }
                operands.append(argument)
                continue
            }
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let isSwitch = parts.count == 1 && Self.switches.contains(parts[0])
            guard let value = parts.count == 2 ? parts[1] : isSwitch ? "" : iterator.next() else {
                throw UsageError("\(parts[0]): needs a value")
            }
            guard values.updateValue(value, forKey: parts[0]) == nil else {
                throw UsageError("\(parts[0]): given twice")
            }
        }
    }

    /// Whether a flag is given that was not asked for yet.
    func has(_ name: String) -> Bool { values[name] != nil }

    /// Whether a flag without a value is given.
    mutating func isSet(_ name: String) -> Bool { take(name, standard: nil) != nil }

    mutating func text(_ name: String) -> String? { take(name, standard: nil) }

    mutating func text(_ name: String, default value: String) -> String { take(name, standard: value) ?? value }

    private mutating func take(_ name: String, standard: String?) -> String? {
        asked.append((name, standard))
        return values.removeValue(forKey: name)
    }

    mutating func required(_ name: String) throws(UsageError) -> String {
        guard let value = text(name) else { throw UsageError("\(name) is missing") }
        return value
    }

    /// The name of a file to write. "-", which is no file and not standard output here, is refused before the work.
    mutating func outputFile(_ name: String) throws(UsageError) -> String? {
        let path = text(name)
        guard path != "-" else { throw UsageError("\(name): - is not standard output here: name a file") }
        return path
    }

    mutating func requiredOutputFile(_ name: String) throws(UsageError) -> String {
        guard let path = try outputFile(name) else { throw UsageError("\(name) is missing") }
        return path
    }

    /// `other`, if there is one, takes the default's place.
    mutating func number(
        _ name: String, default value: Int, in range: ClosedRange<Int>, unless other: Int? = nil
    ) throws(UsageError) -> Int {
        try Self.number(name, text: take(name, standard: "\(value)"), in: range) ?? other ?? value
    }

    /// Nil when it is not given.
    mutating func number(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        try Self.number(name, text: text(name), in: range)
    }

    private static func number(_ name: String, text: String?, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw UsageError("\(name): must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A number with a decimal point.
    mutating func decimal(
        _ name: String, default value: String, in range: ClosedRange<Double>
    ) throws(UsageError) -> Double {
        guard let number = Double(take(name, standard: value) ?? value), range.contains(number) else {
            throw UsageError("\(name): must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    mutating func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String, default value: Choice
    ) throws(UsageError) -> Choice where Choice.RawValue == String {
        guard let text = take(name, standard: value.rawValue) else { return value }
        guard let choice = Choice.allCases.first(where: { $0.rawValue == text }) else {
            let known = Choice.allCases.map(\.rawValue).joined(separator: " or ")
            throw UsageError("\(name): must be \(known)")
        }
        return choice
    }

    /// Refuses flags that the command did not ask for.
    func finish() throws(UsageError) {
        if let name = values.keys.min() { throw UsageError("\(name): no such flag here; see postern-bench --help") }
    }
}
