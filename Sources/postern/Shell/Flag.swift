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
