/// The flags of every command.
enum GlobalFlags {
    /// The protocol calls this flag validate_only.
    private static let dryRun = {
        var flag = Flag("dry-run", "check everything, change nothing")
        flag.alias = "validate-only"
        return flag
    }()

    /// The line in the help of a command that takes the place of all global flags.
    static let pointer = "Flags of every command, such as -t, -o and --context: postern help flags"

    static let all = [
        Flag("context", "NAME", "use this context instead of the current one and of the environment"),
        Flag(
            "server", "HOST:PORT[,…]",
            "where posternd listens, or unix:/path; of several the first that works (POSTERN_SERVER; default "
                + "\(Destination.defaultServer))"),
        Flag(
            "tenant", short: "t", "ID",
            "the tenant to work on (POSTERN_TENANT); \"\": the key's own tenant, or else the default pool, as when "
                + "nothing says one"),
        Flag("key-file", "FILE", "holds the API key (POSTERN_KEY_FILE; default ./postern-data/admin-key)"),
        Flag("tls", "speak TLS, trusting the system's certificates (POSTERN_TLS=true)"),
        Flag("ca-file", "FILE", "speak TLS, trusting these certificates instead (POSTERN_CA_FILE)"),
        Flag("server-name", "NAME", "speak TLS; the server's certificate is for this name (POSTERN_SERVER_NAME)"),
        Flag("cert", "FILE", "speak TLS, and show this certificate (POSTERN_CERT)"),
        Flag("key", "FILE", "the private key of --cert (POSTERN_KEY)"),
        Flag("output", short: "o", "FORMAT", "table (default), wide, json, ndjson, csv or name"),
        Flag(
            "fields", "NAME,…",
            "print these fields only, by their names in the JSON or in one record's table: email,created_at"),
        Flag("no-headers", "leave the table's first line out"),
        Flag("quiet", short: "q", "print ids only, and no messages"),
        Flag("timeout", "DURATION", "how long to wait for an answer (default 10s)"),
        Flag("request-id", "ID", "names the call in the server's log"),
        dryRun,
        Flag("yes", short: "y", "do not ask"),
        Flag("production", "you mean the production server; with context add: marks it as one"),
        Flag("confirm", "NAME", "confirms what cannot be undone: the name of what is deleted"),
        Flag("help", short: "h", "explain the command"),
        Flag("version", "print the version of this program"),
    ]
}
