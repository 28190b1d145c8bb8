import Base
import Crypto
import Glibc
import TestSupport
import Testing

/// Scheduled backups: which of them are kept, and what /metrics says of them.
@Suite struct BackupScheduleTests {
    /// Runs posternd with a directory for backups until its log holds `line`, and calls `body` with its HTTP port.
    private static func run(
        in directory: String, environment: [String] = [], flags: [String] = [], until line: String,
        _ body: (UInt16) throws -> Void
    ) throws {
        let (port, httpPort) = (try freePort(), try freePort())
        let process = try ChildProcess(
            "/usr/bin/env",
            environment + [
                ChildProcess.built("posternd"), "--data-directory", "\(directory)/data",
                "--listen-address", "127.0.0.1:\(port)", "--http-address", "127.0.0.1:\(httpPort)",
                "--signing-algorithm", "ES256", "--backup-directory", "\(directory)/backups",
            ] + flags, output: "\(directory)/log")
        defer { process.kill() }
        func log() -> String { String(decoding: readFile("\(directory)/log") ?? [], as: UTF8.self) }
        try blockUntil("posternd says \(line): \(log())") { log().contains(line) }
        try body(httpPort)
    }

    /// When the last backup was complete, in seconds; nil if the page does not say it.
    private static func lastSuccess(_ httpPort: UInt16) throws -> Double? {
        let page = try FaultyServer.get("/metrics", port: httpPort)
        let name = "postern_backup_last_success_timestamp_seconds "
        return page.split(separator: "\n").first { $0.hasPrefix(name) }.flatMap { Double($0.dropFirst(name.count)) }
    }

    /// A full file server may take all bytes and say only at the sync that there was no room for them.
    @Test func `A backup that could not be synced is a failure and no success`() throws {
        try withTemporaryDirectory { directory in
            let folder = BackupFolder(in: directory)
            writeFile("\(directory)/rules", [UInt8]("fail sync 1 0 ENOSPC\n".utf8))
            let faults = [
                "LD_PRELOAD=\(try FaultyServer.buildLibrary(in: directory))",
                "FAULTY_DISK_FILE=\(folder.unfinishedEnd)", "FAULTY_DISK_RULES=\(directory)/rules",
            ]
            try Self.run(in: directory, environment: faults, until: "no backup could be taken") { httpPort in
                let page = try FaultyServer.get("/metrics", port: httpPort)
                #expect(page.contains("\npostern_backup_failures_total 1\n"))
                #expect(try Self.lastSuccess(httpPort) == 0)
            }
        }
    }

    private static func faultyDirectory(_ directory: String, _ rule: String) throws -> [String] {
        writeFile("\(directory)/rules", [UInt8]("\(rule)\n".utf8))
        return [
            "LD_PRELOAD=\(try FaultyServer.buildLibrary(in: directory))", "FAULTY_DISK_FILE=/backups",
            "FAULTY_DISK_RULES=\(directory)/rules",
        ]
    }

    /// Otherwise the next backup would get a number that makes it look older than those that there are.
    @Test func `A directory that cannot be read to its end is not taken for an empty one`() throws {
        try withTemporaryDirectory { directory in
            let folder = BackupFolder(in: directory)
            for number in 1...3 { folder.add(number) }
            let faults = try Self.faultyDirectory(directory, "fail list 1 0 EIO")
            try Self.run(in: directory, environment: faults, until: "no backup could be taken") { httpPort in
                let names = try DirectoryNames.list(folder.backups).sorted()
                #expect(names == [1, 2, 3].map { BackupFolder.name($0) })
                let lastSuccess = try Self.lastSuccess(httpPort)
                #expect(lastSuccess == 0)
            }
            let log = String(decoding: readFile("\(directory)/log") ?? [], as: UTF8.self)
            #expect(log.contains("readdir: Input/output error"))
        }
    }

    @Test func `A backup is a success though the old ones cannot be looked at`() throws {
        try withTemporaryDirectory { directory in
            #expect(mkdir("\(directory)/backups", 0o700) == 0)
            // The directory is empty but for its two own names: it is read to its end by three calls, at the start and
            // for the new backup's number. The call after these looks for old backups.
            let faults = try Self.faultyDirectory(directory, "fail list 7 1 EIO")
            try Self.run(in: directory, environment: faults, until: "old backups could not be deleted") { httpPort in
                #expect(try DirectoryNames.list("\(directory)/backups").count == 1)
                #expect(try Self.lastSuccess(httpPort) ?? 0 > 0)
                let page = try FaultyServer.get("/metrics", port: httpPort)
                #expect(page.contains("\npostern_backup_failures_total 0\n"))
            }
        }
    }

    /// Otherwise a server that is started again each day would never be without a backup for longer than a day.
    @Test func `The newest backup from before a start counts after it`() throws {
        try withTemporaryDirectory { directory in
            BackupFolder(in: directory).add(1, age: 7_200)
            let made = time(nil) - 7_200
            try Self.run(in: directory, until: "\"serving\"") { httpPort in
                // The thread of the schedule looks at the directory while the server begins to serve.
                var found = try Self.lastSuccess(httpPort)
                try blockUntil("the schedule has looked at the directory") {
                    found = try Self.lastSuccess(httpPort)
                    return found != 0
                }
                #expect(abs(try #require(found) - Double(made)) < 3_600)
            }
        }
    }

    @Test func `The schedule keeps the newest ones, and a restart takes none too many`() throws {
        try withTemporaryDirectory { directory in
            let folder = BackupFolder(in: directory)
            for number in 1...3 { folder.add(number) }
            writeFile("\(folder.backups)/postern-notes.txt", [0])
            for _ in 0..<2 {
                try Self.run(in: directory, flags: ["--backup-keep", "2"], until: "\"serving\"") { httpPort in
                    try blockUntil("the schedule has done its work: \(fileNames(in: folder.backups))") {
                        try Self.lastSuccess(httpPort) != 0 && folder.complete?.count == 2
                    }
                }
            }
            let names = try #require(folder.complete)
            #expect(names.first == BackupFolder.name(3) && names.last?.hasPrefix("postern-000004") == true, "\(names)")
            #expect(fileNames(in: folder.backups).contains("postern-notes.txt"))
            let newest = "\(folder.backups)/\(names.last ?? "")"
            let check = try BackupTests.posternd(folder.data, ["--check-backup", newest])
            #expect(check.status == 0, "\(check.said)")
        }
    }

    /// Somebody's file has a number behind which no number is left.
    @Test(arguments: ["999999999999999999-x", "999999999999-x", "1000000000000000000-20200101T000000Z"])
    func `A made-up number does not end the deletion of old backups`(_ madeUp: String) throws {
        try withTemporaryDirectory { directory in
            let folder = BackupFolder(in: directory)
            for number in 1...2 { folder.add(number) }
            let strange = "postern-\(madeUp).backup"
            writeFile("\(folder.backups)/\(strange)", [0])
            var earlier = [BackupFolder.name(1), BackupFolder.name(2)]
            for _ in 0..<2 {
                try Self.run(in: directory, flags: ["--backup-keep", "1"], until: "took a backup") { _ in
                    try blockUntil("the older backups are gone: \(fileNames(in: folder.backups))") {
                        guard let names = folder.complete else { return false }
                        return names.count == 2 && names.contains(strange)
                            && Set(names).isDisjoint(with: earlier)
                    }
                }
                earlier = try #require(folder.complete).filter { $0 != strange }
                // The next start takes another backup, in another second.
                for name in earlier { folder.setAge(86_400 * 365, of: name) }
                let now = time(nil)
                try blockUntil("a second has passed") { time(nil) > now }
            }
        }
    }

    /// A server of another project or with another master key, and a file that is no backup.
    @Test func `Servers that share a directory leave each other's backups alone`() throws {
        try withTemporaryDirectory { directory in
            let folder = BackupFolder(in: directory)
            for number in 1...2 { folder.add(number) }
            folder.add(3, masterKey: MasterKey.generate(random: .system), age: 0)
            folder.add(4, projectID: "other", age: 0)
            folder.add(5, content: [0])
            let unfinished = ["unfinished.new", "unfinished-00112233445566778899aabbccddeeff.new"]
            for name in unfinished { writeFile("\(folder.backups)/\(name)", [0]) }
            try Self.run(in: directory, flags: ["--backup-keep", "1"], until: "took a backup") { httpPort in
                try blockUntil("the older of the own backups are gone: \(fileNames(in: folder.backups))") {
                    folder.complete?.count == 4
                }
                #expect(try Self.lastSuccess(httpPort) ?? 0 > 0)
            }
            let names = try #require(folder.complete)
            let others = [3, 4, 5].map { BackupFolder.name($0) }
            #expect(Array(names.prefix(3)) == others, "\(names)")
            #expect(names.last?.hasPrefix("postern-000006-") == true, "\(names)")
            #expect(Set(unfinished).isSubset(of: fileNames(in: folder.backups)))
        }
    }

    /// Another server that shares the directory may take the same number in the same second. A file system may give a
    /// file one name only.
    @Test(arguments: [("fail link 1 2 EEXIST", 6), ("fail link 1 1 EPERM", 4)])
    func `A backup takes the next number that is free, and no name twice`(_ rule: String, _ number: Int) throws {
        try withTemporaryDirectory { directory in
            let folder = BackupFolder(in: directory)
            for number in 1...3 { folder.add(number) }
            writeFile("\(directory)/rules", [UInt8]("\(rule)\n".utf8))
            let faults = [
                "LD_PRELOAD=\(try FaultyServer.buildLibrary(in: directory))",
                "FAULTY_DISK_FILE=\(folder.unfinishedEnd)", "FAULTY_DISK_RULES=\(directory)/rules",
            ]
            try Self.run(in: directory, environment: faults, until: "took a backup") { _ in }
            let names = try #require(folder.complete)
            #expect(Array(names.prefix(3)) == [1, 2, 3].map { BackupFolder.name($0) }, "\(names)")
            #expect(names.count == 4 && names.last?.hasPrefix("postern-00000\(number)-") == true, "\(names)")
            let newest = "\(folder.backups)/\(names.last ?? "")"
            let check = try BackupTests.posternd(folder.data, ["--check-backup", newest])
            #expect(check.status == 0, "\(check.said)")
        }
    }
}
