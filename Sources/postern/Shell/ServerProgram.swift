/// posternd on this machine, for work on the data of a stopped server.
struct ServerProgram {
    /// The exit status of posternd when it has found damage (docs/operations.md).
    static let damagedStatus: Int32 = 65

    /// The flags of a command that runs posternd.
    static let flags =
        settings + [Flag("posternd", "FILE", "the server's program (default: beside this one, else on PATH)")]

    /// The flags that posternd has as well.
    private static let settings = [
        Flag("data-directory", "DIR", "the server's data (default: as posternd finds it)"),
        Flag("master-key-file", "FILE", "the server's master key (default: as posternd finds it)"),
        Flag("config", "FILE", "the server's configuration file"),
    ]

    let path: String
    private let settings: [String]

    init(_ arguments: Arguments) {
        path = arguments.value("posternd") ?? LocalProgram.path(of: "posternd")
        settings = Self.settings.flatMap { flag in
            arguments.value(flag.name).map { ["--\(flag.name)", $0] } ?? []
        }
    }

    /// Runs posternd to its end, and returns its standard output.
    func run(_ action: [String]) throws(CommandError) -> (status: Int32, output: String) {
        try LocalProgram.run(path, action + settings)
    }
}
