import Base
import Glibc
import Messages
import TestSupport
import Testing

/// posternd over a disk that fails as it is told to (Tests/Fixtures/faulty-disk.c).
final class FaultyServer {
    let directory: String
    private(set) var process: ChildProcess
    private(set) var key: Secret
    private(set) var client: RawClient
    private let port: UInt16
    private let httpPort: UInt16
    private let library: String
    /// What tells the library where to keep its counts, and which file is full.
    private let options: [String]

    /// Starts posternd in `directory`, with the store in a folder of its own. Makes a tenant "fast" with cheap hashes.
    ///
    /// `isCounting`: two files are opened for each call then. `full`: the end of the path of a file that takes no byte.
    init(_ directory: String, isCounting: Bool, full: String?) throws {
        self.directory = directory
        self.options =
            (isCounting ? ["FAULTY_DISK_COUNT=\(directory)/count"] : [])
            + (full.map { ["FAULTY_DISK_FULL=\($0)"] } ?? [])
        self.port = try freePort()
        self.httpPort = try freePort()
        self.library = try Self.buildLibrary(in: directory)
        self.process = try Self.start(directory, library, port, httpPort, options)
        self.key = try CrashTests.adminKey("\(directory)/data")
        self.client = try RawClient(port: port)
        client.apiKey = key
        let request = TenantsCreateRequest(
            tenantID: "fast", tenant: Messages.Tenant(synthetic: true),
            updateMask: ProtobufFieldMask(paths: ["synthetic"]))
        _ = try client.call("postern.v1.Tenants/Create", request, returning: TenantsCreateResponse.self)
    }

    /// Builds faulty-disk.c, and returns the library's path.
    static func buildLibrary(in directory: String) throws -> String {
        let tests = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
        let library = "\(directory)/faulty-disk.so"
        let source = "/\(tests)/Fixtures/faulty-disk.c"
        let compiler = try ChildProcess(
            "cc", ["-O1", "-shared", "-fPIC", "-o", library, source, "-ldl", "-pthread"], output: "\(directory)/cc.log")
        guard compiler.wait() == 0 else {
            Issue.record("cc: \(String(decoding: readFile("\(directory)/cc.log") ?? [], as: UTF8.self))")
            throw Failure(.internal, "NO_LIBRARY", "faulty-disk.c was not built")
        }
        return library
    }

    private static func start(
        _ directory: String, _ library: String, _ port: UInt16, _ httpPort: UInt16, _ options: [String]
    ) throws -> ChildProcess {
        let process = try ChildProcess(
            "/usr/bin/env",
            [
                "LD_PRELOAD=\(library)", "FAULTY_DISK_FILE=/data/data.mdb", "FAULTY_DISK_RULES=\(directory)/rules",
            ] + options + [
                ChildProcess.built("posternd"), "--data-directory", "\(directory)/data",
                "--listen-address", "127.0.0.1:\(port)", "--http-address", "127.0.0.1:\(httpPort)",
            ], output: "\(directory)/log")
        try blockUntilServing(port: port, text(of: "\(directory)/log"))
        return process
    }

    private static func text(of path: String) -> String { String(decoding: readFile(path) ?? [], as: UTF8.self) }

    var log: String { Self.text(of: "\(directory)/log") }

    /// Starts posternd again over the same store after it ended.
    func restart() throws {
        process = try Self.start(directory, library, port, httpPort, options)
        client = try RawClient(port: port)
        client.apiKey = key
    }

    // MARK: The disk

    /// Sets what the disk does from now on. Without rules it is sound, and as large as it is.
    func setRules(_ lines: [String]) {
        writeFile("\(directory)/rules.new", [UInt8](lines.map { $0 + "\n" }.joined().utf8))
        rename("\(directory)/rules.new", "\(directory)/rules")
    }

    /// How many calls of a kind ("all", "write", "meta", "sync", "grow", "list") there were so far, if the
    /// library counts.
    func count(of kind: String) -> Int {
        let words = Self.text(of: "\(directory)/count").split(whereSeparator: \.isWhitespace)
        guard let place = words.firstIndex(of: kind[...]), place + 1 < words.count else { return 0 }
        return Int(words[place + 1]) ?? 0
    }

    // MARK: Calls

    /// Calls a method; returns nil on success, else the reason of the refusal.
    func outcome<Response: Message>(
        _ method: String, _ request: some Message, _: Response.Type
    ) throws -> Text? {
        do {
            _ = try client.call("postern.v1.\(method)", request, returning: Response.self)
            return nil
        } catch let failure as Failure {
            return Text("\(failure.reason)")
        }
    }

    func create(_ uid: String, photoByteCount: Int = 0) throws -> Text? {
        var request = UsersCreateRequest(tenantID: "fast", uid: Text(uid))
        if photoByteCount > 0 {
            request.photoURL = Text("https://example.com/" + String(repeating: "x", count: photoByteCount - 20))
        }
        return try outcome("Users/Create", request, UsersCreateResponse.self)
    }

    func exists(_ uid: String) throws -> Bool {
        let reason = try outcome(
            "Users/Get", UsersGetRequest(tenantID: "fast", uid: Text(uid)), UsersGetResponse.self)
        #expect(reason == nil || reason == "USER_NOT_FOUND")
        return reason == nil
    }

    func delete(_ uid: String) throws -> Text? {
        try outcome(
            "Users/Delete", UsersDeleteRequest(tenantID: "fast", uid: Text(uid)), UsersDeleteResponse.self)
    }

    func get(_ path: String) throws -> String { try Self.get(path, port: httpPort) }

    /// The answer of the HTTP port, its head included.
    static func get(_ path: String, port: UInt16) throws -> String {
        let probe = try RawClient(port: port)
        try probe.send([UInt8]("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        var answer: [UInt8] = []
        while let more = try? probe.receive(65_536), !more.isEmpty { answer += more }
        return String(decoding: answer, as: UTF8.self)
    }
}

func withFaultyServer(
    isCounting: Bool = false, full: String? = nil, _ body: (FaultyServer) throws -> Void
) throws {
    try withTemporaryDirectory { directory in
        let server = try FaultyServer(directory, isCounting: isCounting, full: full)
        defer { server.process.kill() }
        try body(server)
    }
}
