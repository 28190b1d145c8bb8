import Base
import Crypto
import Glibc
import JSON
import Messages
import TestSupport
import Testing

/// `postern service-account …` and `postern token mint`, run as a program against a server.
@Suite struct ServiceAccountCommandTests {
    /// Runs `postern` with the admin key; returns its exit status and what it printed, as JSON.
    private func postern(_ server: TestServer, _ words: String...) throws -> (status: Int32, json: JSONValue) {
        let directory = server.directory
        writeFile("\(directory)/admin-key", server.adminKey.withBytes { [UInt8]($0) })
        let program = try ChildProcess(
            ChildProcess.built("postern"),
            ["--server", "127.0.0.1:\(server.port)", "--key-file", "\(directory)/admin-key", "-o", "json", "-y"]
                + words,
            output: "\(directory)/said")
        let status = program.wait()
        let said = readFile("\(directory)/said") ?? []
        // Text for people comes before the document.
        let document = said.drop { $0 != UInt8(ascii: "{") && $0 != UInt8(ascii: "[") }
        return (status, (try? JSONValue(parsing: Array(document))) ?? .string(Text(validating: said) ?? .empty))
    }

    private func mode(of path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    @Test func anAccountIsMadeWithAKeyFileOfItsOwnersOnly() async throws {
        try await withServer { server in
            let made = try postern(
                server, "service-account", "create", "shop", "--role", "none", "--custom-tokens", "--all-tenants")
            #expect(made.status == 0 && made.json["email"] == "shop@test.postern.local", "\(made.json)")
            let path = "\(server.directory)/shop.json"
            let keyMade = try postern(server, "service-account", "key", "create", "shop", "--key-out", path)
            #expect(keyMade.status == 0 && keyMade.json["algorithm"] == "RS256", "\(keyMade.json)")
            #expect(mode(of: path) == 0o600)
            let keyFile = try JSONValue(parsing: readFile(path) ?? [])
            #expect(keyFile["client_email"] == "shop@test.postern.local")
            #expect(keyFile["private_key_id"] == keyMade.json["key_id"])

            let pair = newKeyPair()
            writeFile("\(server.directory)/shop.pem", spkiPEM(pair))
            let uploaded = try postern(
                server, "service-account", "key", "upload", "shop", "\(server.directory)/shop.pem", "--lifetime", "1d")
            #expect(uploaded.json["key_id"]?.text == pair.publicKey.keyID, "\(uploaded.json)")
            let revoked = try postern(
                server, "service-account", "key", "revoke", "shop", pair.publicKey.keyID.string)
            #expect(revoked.status == 0 && revoked.json["revoked_at_micros"] != 0, "\(revoked.json)")
            let keys = try postern(server, "service-account", "key", "list", "shop")
            #expect(keys.json.array?.count == 2, "\(keys.json)")
        }
    }

    @Test func anAccountsQuotasAreSetAndChanged() async throws {
        try await withServer { server in
            let made = try postern(
                server, "service-account", "create", "shop", "--role", "app", "--all-tenants",
                "--quota-mutations-per-second", "7")
            let quotas = made.json["quotas"]
            #expect(quotas?["mutations_per_second"] == 7 && quotas?["written_bytes_per_hour"] == 0, "\(made.json)")
            let changed = try postern(
                server, "service-account", "update", "shop", "--quota-written-bytes-per-hour", "1000000")
            let after = changed.json["quotas"]
            // The quota that was not given stays.
            #expect(after?["mutations_per_second"] == 7 && after?["written_bytes_per_hour"] == 1_000_000)
            #expect(try postern(server, "service-account", "get", "shop").json["quotas"] == after)
        }
    }

    @Test func anAccountIsChangedDisabledEnabledAndDeleted() async throws {
        try await withServer { server in
            _ = try postern(server, "service-account", "create", "shop", "--role", "app", "--all-tenants")
            let changed = try postern(
                server, "service-account", "update", "shop", "--role", "verifier", "--scope-tenant", "",
                "--custom-tokens", "true", "--display-name", "Shop")
            #expect(changed.json["role"] == "ROLE_VERIFIER" && changed.json["scope"] == ["tenant_id": ""])
            #expect(changed.json["custom_tokens"] == true && changed.json["display_name"] == "Shop")
            #expect(try postern(server, "service-account", "disable", "shop").json["disabled"] == true)
            #expect(try postern(server, "service-account", "enable", "shop").json["disabled"] == false)
            #expect(try postern(server, "service-account", "list").json.array?.count == 2)
            #expect(try postern(server, "service-account", "delete", "shop").status != 0)
            #expect(try postern(server, "service-account", "delete", "shop", "--confirm=shop").status == 0)
            #expect(try postern(server, "service-account", "get", "shop").status != 0)
        }
    }

    @Test func aMintedTokenSignsIn() async throws {
        try await withServer { server in
            let minted = try postern(server, "token", "mint", "u1", "--claims", #"{"plan":"gold"}"#, "--lifetime", "5m")
            let token = minted.json["custom_token"]?.text ?? .empty
            #expect(claims(of: token)["uid"] == "u1", "\(minted.json)")
            let client = try server.connect()
            let signedIn: AccountsSignInWithCustomTokenResponse = try client.call(
                "postern.v1.Accounts/SignInWithCustomToken",
                AccountsSignInWithCustomTokenRequest(token: Secret(token.bytes)))
            #expect(claims(of: signedIn.tokens?.idToken ?? .empty)["plan"] == "gold")
        }
    }
}
