import Base
import JSON
import Messages
import PosternClient

/// postern backup …
enum BackupCommands {
    static let all = [create, verify, restore]

    static let create = Command(
        path: ["backup", "create"], methods: ["Project/Backup"],
        summary: "Writes a backup of the whole running server, without the master key; - is standard output.",
        example: "backup create /backups/postern.backup", operands: [.required("file|-")], isReadOnly: true,
        prints: .noRecords
    ) { session in
        let path = session.arguments.operands[0]
        guard path != "-" else { return try await createOnOutput(session) }
        guard !File.exists(path) else {
            throw CommandError.usage("\(path): exists already", hint: "a backup is not overwritten: name another file")
        }
        let byteCount = try await File.create(path) { put in
            let client = ProjectClient(channel: try session.channel())
            let backup = try await client.backup(ProjectBackupRequest(), options: session.streamOptions)
            return try await backup.forEachPiece { try put($0) }
        }
        session.say("\(path): \(byteCount) bytes")
    }

    /// For a program that keeps the backup. What it gets is whole only if this command ends well.
    private static func createOnOutput(_ session: Session) async throws {
        let console = session.console
        guard !console.outputIsForTerminal else {
            throw CommandError.usage("a backup is not for a terminal", hint: "name a file, or pipe it to a program")
        }
        let client = ProjectClient(channel: try session.channel())
        let backup = try await client.backup(ProjectBackupRequest(), options: session.streamOptions)
        let byteCount = try await backup.forEachPiece {
            console.write($0)
            try console.checkOutput()
        }
        session.say("\(byteCount) bytes")
    }

    static let verify = Command(
        path: ["backup", "verify"],
        summary: "Reads a whole backup and says whether it is sound, and what restoring it would undo.",
        example: "backup verify /backups/postern.backup --data-directory /var/lib/postern",
        operands: [.required("file")], flags: ServerProgram.flags, isReadOnly: true
    ) { session in
        let report = try run("--check-backup", session)
        session.output.printLines(of: report)
        try check(report)
    }

    static let restore = Command(
        path: ["backup", "restore"],
        summary: "Puts the store of a backup in the place of a stopped server's; the store that it replaces is kept.",
        example: "backup restore /backups/postern.backup --data-directory /var/lib/postern --confirm restore",
        operands: [.required("file")], flags: ServerProgram.flags, isReadOnly: true, asksForName: true,
        note: "Stop the server before. Without --confirm restore it asks; -y is not enough."
    ) { session in
        let verdict = try run("--check-restore", session)
        // People read the verdict before they are asked. In a format for programs all lines are in one record, at the
        // end.
        if session.output.isForPeople || !verdict.isSound {
            session.output.printLines(of: verdict)
        } else {
            for line in verdict.lines { session.say(Output.printable(line)) }
        }
        try check(verdict)
        try session.confirm(
            "This puts \(session.arguments.operands[0]) in the place of the store, and signs every user out.",
            byName: "restore")
        var report: ServerReport
        do throws(CommandError) {
            report = try run("--restore-backup", session)
        } catch {
            if error.exitCode == .interrupted {
                session.say("the restore was ended: the store is the former one or the backup's; run the command again")
            }
            throw error
        }
        let news = report.lines.filter { !verdict.lines.contains($0) }
        report.lines = session.output.isForPeople ? news : verdict.lines + news
        session.output.printLines(of: report)
        try check(report)
    }

    private static func run(_ action: String, _ session: Session) throws(CommandError) -> ServerReport {
        try File.checkName(session.arguments.operands[0])
        let program = ServerProgram(session.arguments)
        let report = try program.run([action, session.arguments.operands[0]])
        guard report.isVerdict else {
            if session.output.isForPeople { session.output.printLines(of: report) }
            throw CommandError("\(program.path) failed; its own message tells why")
        }
        return report
    }

    private static func check(_ report: ServerReport) throws(CommandError) {
        guard report.isSound else { throw CommandError("the backup cannot be restored", exitCode: .damaged) }
    }
}
