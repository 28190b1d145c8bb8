import Base
import JSON
import TestSupport
import Testing

@testable import postern

/// postern apikey, against a server.
@Suite struct APIKeyCommandsTests {
    private static let quotas = ["mutations_per_second", "written_bytes_per_hour", "sms_per_hour"]

    @Test func `One quota is changed, and the others stay`() async throws {
        try await withServer { server in
            func json(_ words: [String]) async throws -> JSONValue {
                let run = await TestConsole.run(["apikey"] + words + ["-o", "json"], on: server)
                #expect(run.code == .ok, "\(run.said)")
                return try JSONValue(parsing: [UInt8](run.written.utf8))
            }
            func values(_ key: JSONValue?) -> [Int64?] {
                Self.quotas.map { key?["quotas"]?[Text($0)]?.integer }
            }
            let made = try await json([
                "create", "--role", "app", "--all-tenants", "--quota-mutations-per-second", "7",
                "--quota-sms-per-hour", "9",
            ])
            #expect(values(made["api_key"]) == [7, 0, 9])
            let id = try #require(made["api_key"]?["api_key_id"]?.string)
            let changed = try await json(["update", id, "--quota-written-bytes-per-hour", "8"])
            #expect(values(changed) == [7, 8, 9])
            let emptied = try await json(["update", id, "--quota-mutations-per-second", "0", "--display-name", "shop"])
            #expect(values(emptied) == [0, 8, 9])
            let nothing = await TestConsole.run(["apikey", "update", id], on: server)
            #expect(nothing.code == .usage && nothing.said.contains("nothing to change"))
        }
    }

    @Test func `Empty lists and lifetimes are refused`() async throws {
        try await withServer { server in
            let create = ["apikey", "create", "--role", "app", "--all-tenants"]
            for words in [
                create + ["--allow-address", ","], create + ["--expires-in", "0s"], create + ["--expires-in", "500ms"],
                ["audit", "list", "--kind", ""], ["audit", "list", "--kind", ","],
                ["audit", "list", "--fields", ","], ["tenant", "copy-settings", "a", "b", "--settings", ""],
                ["tenant", "update", "a", "--allowed-sms-regions", ""],
                ["tenant", "update", "a", "--blocked-sms-regions", ","],
                ["tenant", "update", "a", "--allowed-continue-domains", ","],
                ["tenant", "update", "a", "--allowed-second-factors", ""],
                ["tenant", "update", "a", "--test-phone-numbers", ","],
                ["tenant", "update", "a", "--password-policy", ""],
                ["provider", "update", "google.com", "--audiences", ","],
                ["user", "update", "u1", "--unlink", ","], ["user", "update", "u1", "--link", ""],
                ["account", "auth-uri", "google.com", "--scopes", ","],
                ["account", "auth-uri", "google.com", "--parameters", ""],
            ] {
                let run = await TestConsole.run(words, on: server)
                #expect(run.code == .usage, "\(words): \(run.said)")
            }
        }
    }
}
