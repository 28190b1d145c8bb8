/// postern store …: commands for a stopped server, on the machine that has its data.
enum StoreCommands {
    static let all = [verify]

    static let verify = Command(
        path: ["store", "verify"],
        summary: "Reads the whole store of a stopped server, and says what is damaged: records and event logs.",
        example: "store verify --data-directory /var/lib/postern",
        flags: ServerProgram.flags, isReadOnly: true
    ) { session in
        let program = ServerProgram(session.arguments)
        let report = try program.run(["--verify-store"])
        guard report.isVerdict else {
            throw CommandError("\(program.path) could not verify the store; its own message tells why")
        }
        session.output.printLines(of: report)
        guard report.isSound else { throw CommandError("the store is damaged", exitCode: .damaged) }
    }
}
