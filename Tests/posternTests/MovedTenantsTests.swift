import Base
import JSON
import TestSupport
import Testing

@testable import postern

/// Taking all tenants over to another server, with the steps of the script in docs/master-key.md.
@Suite struct MovedTenantsTests {
    /// The tenants that each server has, and their settings. "" is the default pool.
    private static let tenants: [(id: String, flags: [String])] = [
        ("open", []), ("shut", ["--disable-auth", "true"]), ("held", ["--suspended", "true"]),
        ("both", ["--disable-auth", "true", "--suspended", "true"]), ("", ["--disable-auth", "true"]),
    ]

    /// Makes the tenants, with a user in each.
    private static func fill(_ server: TestServer) async throws {
        for (id, flags) in tenants {
            if !id.isEmpty { try await run(["tenant", "create", id], server) }
            try await run(["-t", id, "user", "create", "--uid", "u-\(id)", "--email", "ann@example.com"], server)
            guard !flags.isEmpty else { continue }
            try await run(["tenant", "update"] + (id.isEmpty ? [] : [id]) + flags, server)
        }
    }

    /// Runs a command that must succeed, with the admin key of `server` or with the key in a file.
    @discardableResult
    private static func run(
        _ words: [String], _ server: TestServer, keyFile: String? = nil
    ) async throws -> String {
        let test = TestConsole()
        var globals = TestConsole.globals(for: server)
        if let keyFile { globals = ["--server", "127.0.0.1:\(server.port)", "--key-file", keyFile] }
        let code = await CommandLineTool.run(globals + words, in: test.console)
        try #require(code == .ok, "\(words): \(test.said)")
        return test.written
    }

    /// The request that the page's jq filter makes of an answer of Tenants/Get.
    private static func settings(_ answer: String) throws -> JSONValue {
        let json = try JSONValue(parsing: [UInt8](answer.utf8))
        let tenant = try #require(json["tenant"])
        let left: [Text] = [
            "tenant_id", "created_at_micros", "updated_at_micros", "revision", "synthetic", "continue_url_rule",
            "client",
        ]
        var paths = (tenant.object ?? []).map(\.name).filter { !left.contains($0) }
        paths += ["client.permissions.disabled_user_signup", "client.permissions.disabled_user_deletion"]
        let mask: JSONValue = ["paths": .array(paths.map { .string($0) })]
        return ["tenant_id": tenant["tenant_id"] ?? "", "tenant": tenant, "update_mask": mask]
    }

    @Test func `Tenants that are disabled or suspended are taken over with their users`() async throws {
        try await withServer { old in
            try await Self.fill(old)
            let key = "\(old.directory)/export.key"
            try await Self.run(
                [
                    "apikey", "create", "--role", "project-admin", "--all-tenants", "--export-password-hashes",
                    "--key-out", key,
                ], old)
            try await withServer { new in
                for (id, flags) in Self.tenants {
                    let (request, users) = ("\(new.directory)/request", "\(new.directory)/users-\(id).ndjson")
                    writeFile(request, [UInt8](#"{"tenant_id":"\#(id)"}"#.utf8))
                    let answer = try await Self.run(["rpc", "call", "Tenants/Get", request], old, keyFile: key)
                    let settings = try Self.settings(answer)
                    writeFile(request, settings.serialized())
                    let call = id.isEmpty ? "Tenants/Update" : "Tenants/Create"
                    let made = try await Self.run(["rpc", "call", call, request], new)
                    let export = ["-t", id, "user", "export", users, "--include-password-hashes"]
                    try await Self.run(export, old, keyFile: key)
                    try await Self.run(["-t", id, "user", "import", users, "--rejects", "\(users).rejects"], new)
                    let before = try await Self.run(["-q", "-t", id, "user", "count"], old, keyFile: key)
                    let after = try await Self.run(["-q", "-t", id, "user", "count"], new)
                    #expect(before == "1\n" && after == before)
                    let moved = try Self.settings(made)["tenant"]
                    let (isDisabled, isSuspended) = (moved?["disable_auth"]?.bool, moved?["suspended"]?.bool)
                    #expect(isDisabled == flags.contains("--disable-auth"), "\(id)")
                    #expect(isSuspended == flags.contains("--suspended"), "\(id)")
                }
            }
        }
    }
}
