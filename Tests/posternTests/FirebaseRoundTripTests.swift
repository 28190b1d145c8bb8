import Base
import TestSupport
import Testing

@testable import postern

/// Files as firebase-tools writes them come in and go out again, byte for byte.
@Suite struct FirebaseRoundTripTests {
    private static func fixture(_ name: String) throws -> [UInt8] {
        let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
        return try #require(readFile("/\(folder)/Fixtures/firebase-tools/\(name)"))
    }

    private static let scrypt = ["--hash-algo", "scrypt"]

    /// Imports the file into a tenant of its own, and returns what an export of it to `name` holds.
    private func roundTrip(_ file: [UInt8], _ name: String, exportedAs exported: String) async throws -> [UInt8] {
        try await withServer { server in
            let (source, target) = ("\(server.directory)/\(name)", "\(server.directory)/exported-\(exported)")
            writeFile(source, file)
            writeFile("\(server.directory)/key", try Self.sampleKey())
            var run = await TestConsole.run(["tenant", "create", "acme"], on: server)
            #expect(run.code == .ok, "\(run.said)")
            let flags =
                Self.scrypt + ["--hash-key-file", "\(server.directory)/key", "--rounds", "8", "--mem-cost", "14"]
            run = await TestConsole.run(["-t", "acme", "user", "import", source] + flags, on: server)
            #expect(run.code == .ok, "\(run.said)")
            let key = "\(server.directory)/export-key"
            run = await TestConsole.run(
                ["apikey", "create", "--role", "tenant-admin", "--scope-tenant", "acme", "--export-password-hashes"]
                    + ["--key-out", key], on: server)
            #expect(run.code == .ok, "\(run.said)")
            let test = TestConsole()
            let words = [
                "--server", "127.0.0.1:\(server.port)", "--key-file", key, "-t", "acme", "user", "export", target,
            ]
            let code = await CommandLineTool.run(
                words + Self.scrypt + ["--include-password-hashes"], in: test.console)
            #expect(code == .ok, "\(test.said)")
            return readFile(target) ?? []
        }
    }

    private static func sampleKey() throws -> [UInt8] {
        let folder = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return try #require(readFile("/\(folder)/tools/examples/firebase-export.key"))
    }

    @Test(arguments: ["users.json", "users-52.csv"])
    func `A file in the present form comes out as it went in`(_ name: String) async throws {
        let file = try Self.fixture(name)
        let exported = try await roundTrip(file, name, exportedAs: name)
        #expect(exported == file, "\(String(decoding: exported, as: UTF8.self))")
    }

    /// Exports are always as wide as firebase-tools writes them now: the columns of six more providers are empty.
    @Test func `A file in the old width comes out in the new one, with the same cells`() async throws {
        let old = try Self.fixture("users-28.csv")
        let exported = try await roundTrip(old, "users-28.csv", exportedAs: "users.csv")
        let widened = String(decoding: old, as: UTF8.self).split(separator: "\n").map { line in
            "\(line)\(String(repeating: ",", count: 52 - 28))\n"
        }.joined()
        #expect(String(decoding: exported, as: UTF8.self) == widened)
        let again = try await roundTrip(exported, "users.csv", exportedAs: "again.csv")
        #expect(again == exported)
    }
}
