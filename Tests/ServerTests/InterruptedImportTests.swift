import Base
import Glibc
import Messages
import TestSupport
import Testing

/// `postern user import` into a posternd that is killed in the middle, and the same command again.
@Suite struct InterruptedImportTests {
    private static let userCount = 12_000
    /// Rows that the server refuses, and rows that are not even sent.
    private static let invalidEvery = 1_000
    private static let malformedEvery = 1_500

    private static func isMalformed(_ row: Int) -> Bool { row % malformedEvery == 0 }
    private static func isRefused(_ row: Int) -> Bool { row % invalidEvery == 0 || isMalformed(row) }

    /// Numbers rows from 1, as the rejects file does.
    private static func lines() -> [UInt8] {
        var text = #"{"hash_spec":"s","algorithm":"firebase-scrypt","signer_key":"\#(base64(64))","#
        text += #""salt_separator":"Bw==","rounds":8,"mem_cost":14}"# + "\n"
        for row in 1...userCount {
            let email = isRefused(row) ? "no-address" : "u\(row)@example.com"
            let salt = isMalformed(row) ? "*" : "AAAA"
            text += #"{"uid":"u\#(row)","email":"\#(email)","hash_spec":"s","password_hash":"\#(base64(64))","#
            text += #""salt":"\#(salt)"}"# + "\n"
        }
        return [UInt8](text.utf8)
    }

    private static func base64(_ byteCount: Int) -> String {
        Base64.standard.encodeToString([UInt8](repeating: 3, count: byteCount))
    }

    private static func start(_ directory: String, _ port: UInt16) throws -> ChildProcess {
        try ChildProcess(
            ChildProcess.built("postern"),
            [
                "-t", "acme", "--server", "127.0.0.1:\(port)", "--key-file", "\(directory)/admin-key", "user", "import",
                "\(directory)/users.ndjson", "--checkpoint", "\(directory)/at", "--rejects", "\(directory)/rejects",
                "--on-conflict", "skip",
            ], output: "\(directory)/said")
    }

    private static func text(_ path: String) -> String { String(decoding: readFile(path) ?? [], as: UTF8.self) }

    /// Waits until the checkpoint names a row behind `row`; false when the import ended before.
    private static func waitForCheckpoint(_ directory: String, beyond row: Int, of tool: ChildProcess) -> Bool {
        for _ in 0..<60_000 {
            let words = text("\(directory)/at").split(separator: "\"rows\":").last ?? ""
            if let settled = Int(words.prefix { $0.isNumber }), settled > row { return true }
            if tool.hasEnded { return false }
            usleep(1_000)
        }
        return false
    }

    @Test func `The counts add up after kills in the middle, and nobody is there twice`() throws {
        try withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            var server = try CrashTests.start(directory, port)
            defer { server.kill() }
            let client = try RawClient(port: port)
            client.apiKey = try CrashTests.adminKey(directory)
            _ = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"),
                returning: TenantsCreateResponse.self)
            client.close()
            writeFile("\(directory)/users.ndjson", Self.lines())
            // First the server is killed, then the tool.
            for (row, killsServer) in [(0, true), (4_000, false)] {
                let tool = try Self.start(directory, port)
                #expect(Self.waitForCheckpoint(directory, beyond: row, of: tool), "\(Self.text("\(directory)/said"))")
                if killsServer {
                    server.kill()
                    #expect(try #require(tool.wait(seconds: 60)) != 0)
                    server = try CrashTests.start(directory, port)
                } else {
                    tool.kill()
                }
            }
            let tool = try Self.start(directory, port)
            #expect(tool.wait(seconds: 120) == 7)
            try Self.expectAll(directory, port)
        }
    }

    private static func expectAll(_ directory: String, _ port: UInt16) throws {
        let refused = (1...userCount).filter(isRefused)
        let said = text("\(directory)/said")
        let summary = try #require(said.split(separator: "\n").first { $0.hasPrefix("read ") }, "\(said)")
        let counts = summary.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }
        // read, created, replaced, skipped, rejected
        #expect(counts.count == 5 && counts[0] == userCount && counts[2] == 0 && counts[4] == refused.count)
        #expect(counts[1] + counts[3] == userCount - refused.count)
        // Rows that the server had settled, but the checkpoint did not have yet, when the server or the tool died.
        #expect(counts[3] <= 4 * 500 * 2, "\(summary)")
        let rejectedRows = text("\(directory)/rejects").split(separator: "\n").compactMap { line in
            Int((line.split(separator: "\"row\":").last ?? "").prefix { $0.isNumber })
        }
        #expect(rejectedRows.sorted() == refused)
        let client = try RawClient(port: port)
        client.apiKey = try CrashTests.adminKey(directory)
        let count = try client.call(
            "postern.v1.Users/Count", UsersCountRequest(tenantID: "acme"), returning: UsersCountResponse.self)
        #expect(Int(count.count) == userCount - refused.count)
        var emails: Set<Text> = []
        var token = Text.empty
        repeat {
            let page = try client.call(
                "postern.v1.Users/List", UsersListRequest(tenantID: "acme", pageSize: 1_000, pageToken: token),
                returning: UsersListResponse.self)
            for user in page.users { #expect(emails.insert(user.email).inserted) }
            token = page.nextPageToken
        } while !token.isEmpty
        #expect(emails.count == userCount - refused.count)
    }
}
