import Base
import Glibc
import JSON
import Messages
import PosternClient

/// postern user export: all users of a tenant into a file, in any of the forms that user import reads.
enum UserExport {
    static let command = Command(
        path: ["user", "export"], methods: ["Users/Export"],
        summary: "Writes all users of a tenant to a new file, which user import reads.",
        example: "-t acme user export - --format ndjson > users.ndjson", operands: [.required("file|-")],
        flags: [
            Flag(
                "format", "FORMAT", "ndjson (all there is), firebase-json or firebase-csv; default: by the name"),
            Flag("include-password-hashes", "needs a key made with --export-password-hashes; an event tells of it"),
            Flag(
                "hash-algo", "ALGO", "firebase-json, firebase-csv: the hashes of this one, as user import names them"),
            Flag("resume", "go on where an export to this file stopped"),
        ], isReadOnly: true, prints: .noRecords
    ) { session in
        var run = try await ExportRun(session)
        try await run.exportAll()
    }
}

/// One running export. Another file, `….resume`, lies beside the export's file until the export is complete.
struct ExportRun {
    /// The progress of an export: how much of the file is good, and the cursor after it.
    struct Place: Equatable {
        /// The tenant whose users are in the file.
        let tenant: ServedTenant
        var cursor = Text.empty
        var byteCount: Int64 = 0
        var userCount: Int64 = 0
        /// The values of --format and --hash-algo: the rest of the file has to have the same.
        var format = ""
        var algorithm = ""
        var writer = UserFileWriter.State()

        /// Refuses to go on with another tenant or in another form. `path`: the file that holds the place.
        func check(
            _ tenant: ServedTenant, _ format: UserFileFormat, _ algorithm: HashAlgorithm?, path: String
        ) throws(CommandError) {
            try self.tenant.check(
                is: tenant, path: path, work: "an export of",
                anew: "remove it and the export's file, and begin the export again")
            guard self.format == format.rawValue, self.algorithm == algorithm?.name ?? "" else {
                let flags = "--format \(self.format)" + (self.algorithm.isEmpty ? "" : " --hash-algo \(self.algorithm)")
                throw .usage("the export was begun with other flags", hint: "go on with \(flags)")
            }
        }

        /// Refuses a file that lacks some of the bytes that were noted: their users would be missing from the export.
        func check(byteCountOf descriptor: Int32, path: String, resumePath: String) throws(CommandError) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw CommandError.system(path) }
            guard Int64(status.st_size) >= byteCount else {
                throw .usage(
                    "\(path): has \(status.st_size) bytes, and \(resumePath) is of a file with \(byteCount) or more",
                    hint: "remove both files, and begin the export again")
            }
        }
    }

    private let session: Session
    private let path: String
    private let descriptor: Int32
    private let includesHashes: Bool
    private var writer: UserFileWriter
    private var place: Place
    /// A file `….resume` says how much of the export's file is good.
    private var hasNotedPlace: Bool

    init(_ session: Session) async throws {
        let arguments = session.arguments
        self.session = session
        path = arguments.operands[0]
        includesHashes = arguments.isSet("include-password-hashes")
        let format = try UserFileFormat.find(arguments.value("format"), path: path)
        let algorithm = try arguments.value("hash-algo").map { name throws(CommandError) in
            try HashAlgorithm(named: name)
        }
        guard format == .ndjson || !includesHashes || algorithm != nil else {
            throw CommandError.usage(
                "files of Firebase hold hashes of one algorithm: say which with --hash-algo",
                hint: "--format ndjson holds all")
        }
        writer = UserFileWriter(format: format, algorithm: algorithm)
        if path != "-", !arguments.isSet("resume") { try Self.checkAbsent(path) }
        let tenant = try await path == "-" ? ServedTenant(of: session) : ServedTenant(withHistoryOf: session)
        place = Place(tenant: tenant, format: format.rawValue, algorithm: algorithm?.name ?? "")
        let isResuming = arguments.isSet("resume")
        hasNotedPlace = isResuming
        guard path != "-" else {
            guard !isResuming else { throw CommandError.usage("standard output cannot be resumed") }
            descriptor = STDOUT_FILENO
            return
        }
        guard isResuming else {
            // The file is for its owner alone, because it holds users' data. An earlier export is not overwritten.
            descriptor = try File.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
            try Self.removeEarlierPlace(of: path)
            return
        }
        let resumePath = Self.resumePath(path)
        place = try Place(reading: resumePath)
        try place.check(tenant, format, algorithm, path: resumePath)
        writer = UserFileWriter(format: format, algorithm: algorithm, state: place.writer)
        descriptor = try File.open(path, O_WRONLY)
        try place.check(byteCountOf: descriptor, path: path, resumePath: resumePath)
        // The bytes after the place were written, but not noted.
        guard ftruncate(descriptor, Int(place.byteCount)) == 0, lseek(descriptor, 0, SEEK_END) == Int(place.byteCount)
        else { throw CommandError.system(path) }
    }

    private static func resumePath(_ path: String) -> String { "\(path).resume" }

    /// Removes the place that an export to an earlier file of this name noted: it says nothing of the new file.
    private static func removeEarlierPlace(of path: String) throws(CommandError) {
        guard unlink(resumePath(path)) != 0, errno != ENOENT else { return }
        let error = CommandError.system(resumePath(path))
        unlink(path)
        throw error
    }

    private static func checkAbsent(_ path: String) throws(CommandError) {
        guard File.exists(path) else { return }
        let hint =
            File.exists(resumePath(path))
            ? "an export to it stopped: --resume goes on" : "an export overwrites no file: name another one"
        throw .usage("\(path): exists already", hint: hint)
    }

    /// If the export fails before a place was noted, no file is left: the same command can be given again.
    mutating func exportAll() async throws {
        do {
            try await exportUsers()
        } catch {
            if path != "-" {
                if hasNotedPlace { sayWhereItStopped() } else { unlink(path) }
            }
            throw error
        }
    }

    private mutating func exportUsers() async throws {
        let tenantID = place.tenant.tenantID
        let request = UsersExportRequest(
            tenantID: tenantID, cursor: place.cursor, includePasswordHashes: includesHashes)
        if place.byteCount == 0 { try write(writer.begin(tenantID: tenantID)) }
        let stream = try await UsersClient(channel: session.channel()).export(request, options: session.streamOptions)
        var isComplete = false
        for try await message in stream {
            try take(message)
            isComplete = message.cursor.isEmpty
        }
        guard isComplete else { throw CommandError("the server ended the export early") }
        try finish()
    }

    private mutating func take(_ message: UsersExportResponse) throws {
        var bytes: [UInt8] = []
        for spec in message.hashSpecs { bytes += writer.lines(of: spec) }
        for user in message.users {
            bytes += writer.line(user, isFirst: place.userCount == 0)
            place.userCount += 1
        }
        try write(bytes)
        place.cursor = message.cursor
        place.writer = writer.state
        if path != "-", !message.cursor.isEmpty { try note() }
        session.showProgress("\(place.userCount) users")
    }

    private mutating func finish() throws {
        try write(writer.end(userCount: place.userCount))
        if path != "-" {
            guard fsync(descriptor) == 0 || errno == EINVAL, Glibc.close(descriptor) == 0 else {
                throw CommandError.system(path)
            }
            try File.syncName(of: path)
            unlink(Self.resumePath(path))
        }
        session.showProgress("")
        for note in writer.notes { session.say(note) }
        session.say("\(place.userCount) users exported")
    }

    private mutating func write(_ bytes: [UInt8]) throws {
        if path == "-" {
            session.console.write(bytes)
            try session.console.checkOutput()
        } else {
            try File.write(bytes, to: descriptor, name: path)
        }
        place.byteCount += Int64(bytes.count)
    }

    /// Syncs the users first, so that a place that is noted is in the file even after the machine stopped.
    private mutating func note() throws {
        guard fdatasync(descriptor) == 0 || errno == EINVAL else { throw CommandError.system(path) }
        try File.replace(Self.resumePath(path), with: place.encoded())
        hasNotedPlace = true
    }

    private func sayWhereItStopped() {
        guard place.userCount > 0 else { return }
        session.console.say("stopped behind \(place.userCount) users; the same command with --resume goes on")
    }
}

extension ExportRun.Place {
    init(reading path: String) throws(CommandError) {
        let bytes = try File.read(path)
        guard let json = try? JSONValue(parsing: bytes), let cursor = json["cursor"]?.text,
            let byteCount = json["bytes"]?.integer, let userCount = json["users"]?.integer, byteCount >= 0,
            userCount >= 0
        else { throw CommandError("\(path): does not say where an export stopped") }
        guard let tenant = ServedTenant(in: json), let format = json["format"]?.string,
            let algorithm = json["hash_algo"]?.string, let names = json["hash_specs"]?.array,
            let flags = json["hash_flags"]?.array, let hashesLeftOut = json["hashes_left_out"]?.integer,
            let providersLeftOut = json["providers_left_out"]?.integer
        else {
            throw CommandError(
                "\(path): does not say all that the export needs to go on: an earlier version wrote it",
                hint: "remove it and the export's file, and begin the export again")
        }
        self.init(
            tenant: tenant, cursor: cursor, byteCount: byteCount, userCount: userCount, format: format,
            algorithm: algorithm,
            writer: UserFileWriter.State(
                specNames: Set(names.compactMap(\.text)), parameters: flags.compactMap(\.string),
                hashesLeftOut: Int(hashesLeftOut), providersLeftOut: Int(providersLeftOut)))
    }

    /// Holds the key of the hashes, as the file itself may. `File.replace` makes it readable by its owner only.
    func encoded() -> [UInt8] {
        let json: JSONValue = [
            "cursor": .string(cursor), "bytes": .integer(byteCount), "users": .integer(userCount),
            "format": .string(Text(format)), "hash_algo": .string(Text(algorithm)),
            "hash_specs": .array(writer.specNames.map { .string($0) }),
            "hash_flags": .array(writer.parameters.map { .string(Text($0)) }),
            "hashes_left_out": .integer(Int64(writer.hashesLeftOut)),
            "providers_left_out": .integer(Int64(writer.providersLeftOut)),
        ]
        return JSONValue.object(tenant.members + (json.object ?? [])).serialized() + [0x0A]
    }
}
