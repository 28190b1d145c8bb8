import Base
import Messages
import TestSupport
import Testing

@testable import postern

/// The candidates for the last word of a line.
@Suite struct CompletionTests {
    private static func candidates(_ line: String) -> [String] {
        let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        let completion = Completion(of: words)
        return completion.candidates(contexts: ["live", "staging"]).filter { $0.hasPrefix(completion.current) }
    }

    @Test func `Commands, flags and values are completed`() {
        #expect(Self.candidates("tenant cr") == ["create"])
        #expect(Self.candidates("-t acme tenant cr") == ["create"])
        #expect(Self.candidates("user mfa ") == ["add-phone", "list", "remove"])
        #expect(Self.candidates("").contains("tenant"))
        #expect(Self.candidates("user create --ema") == ["--email", "--email-verified"])
        #expect(Self.candidates("apikey create --role pro") == ["project-admin"])
        #expect(Self.candidates("user list -o nd") == ["ndjson"])
        #expect(Self.candidates("user import f --hash-algo pbk") == ["pbkdf_sha1", "pbkdf2_sha256", "pbkdf2_sha512"])
        #expect(Self.candidates("user create --disabled ") == ["true", "false"])
        #expect(Self.candidates("--context st") == ["staging"])
        #expect(Self.candidates("context use li") == ["live"] && Self.candidates("context add li") == [])
        #expect(Self.candidates("rpc call postern.v1.Users/GetByE") == ["postern.v1.Users/GetByEmail"])
        #expect(Self.candidates("user create --password-file ").isEmpty)
    }

    @Test func `Tenants are asked of the server that the line is about`() async throws {
        try await withServer { server in
            for name in ["acme", "acme-2", "other"] {
                #expect(await TestConsole.run(["tenant", "create", name], on: server).code == .ok)
            }
            let globals = TestConsole.globals(for: server).dropLast()
            for line in [["tenant", "get", "ac"], ["user", "list", "-t", "ac"], ["--tenant", "ac"]] {
                let test = TestConsole()
                let words = ["completion", "words", "--"] + globals + line
                #expect(await CommandLineTool.run(words, in: test.console) == .ok)
                #expect(test.written == "acme\nacme-2\n", "\(line)")
            }
            let away = TestConsole()
            let nowhere = ["completion", "words", "--", "--server", "127.0.0.1:1", "tenant", "get", ""]
            #expect(await CommandLineTool.run(nowhere, in: away.console) == .ok && away.written.isEmpty)
        }
    }

    @Test func `The server is asked for the tenants that begin as the word does`() {
        func filter(_ words: String...) -> TenantFilter? { Completion(of: words).tenantsRequest?.filter }
        #expect(filter("tenant", "get", "ac") == TenantFilter(tenantIDPrefix: "ac"))
        #expect(filter("tenant", "copy-settings", "te") == TenantFilter(tenantIDPrefix: "te"))
        #expect(filter("tenant", "copy-settings", "template", "ac") == TenantFilter(tenantIDPrefix: "ac"))
        #expect(filter("tenant", "create", "new-one", "--template", "te") == TenantFilter(tenantIDPrefix: "te"))
        let any = Completion(of: ["tenant", "get", ""]).tenantsRequest
        #expect(any != nil && any?.filter == nil)
        for words in [
            ["tenant", "copy-settings", "a", "b", "c"], ["user", "get", "ac"], ["tenant", "copy-settings", "-"],
        ] {
            #expect(Completion(of: words).tenantsRequest == nil, "\(words)")
        }
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func `Every shell asks the program`(shell: String) async {
        let test = TestConsole()
        #expect(await test.run("completion", shell) == .ok)
        #expect(test.written.contains("postern completion words --"))
    }
}
