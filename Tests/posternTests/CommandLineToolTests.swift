import Base
import Messages
import TestSupport
import Testing

@testable import postern

@Suite struct CommandLineToolTests {
    @Test func `Exit codes follow the status`() {
        #expect(ExitCode(.notFound) == .notFound)
        #expect(ExitCode(.permissionDenied) == .notAllowed)
        #expect(ExitCode(.unauthenticated) == .notAllowed)
        #expect(ExitCode(.alreadyExists) == .conflict)
        #expect(ExitCode(.failedPrecondition) == .conflict)
        #expect(ExitCode(.deadlineExceeded) == .unavailable)
        #expect(ExitCode(.invalidArgument) == .general)
    }

    @Test func `Nothing answers at the address: exit 6, and the address is in the message`() async {
        let test = TestConsole()
        #expect(await test.run("server", "info", "--server", "127.0.0.1:1") == .unavailable)
        #expect(test.said.contains("Cannot reach 127.0.0.1:1"))
        #expect(test.written.isEmpty)
    }

    @Test func `What cannot be undone is asked first, before anything is sent`() async {
        let silent = TestConsole()
        #expect(await silent.run("tenant", "delete", "acme", "--server", "127.0.0.1:1") == .usage)
        let wrong = TestConsole(answers: ["acmee"])
        #expect(await wrong.run("tenant", "delete", "acme", "--server", "127.0.0.1:1") == .declined)
        let right = TestConsole(answers: ["acme"])
        #expect(await right.run("tenant", "delete", "acme", "--server", "127.0.0.1:1") == .unavailable)
        let no = TestConsole(answers: ["n"])
        #expect(await no.run("user", "delete", "u1", "--server", "127.0.0.1:1") == .declined)
        let yes = TestConsole()
        #expect(await yes.run("user", "delete", "u1", "-y", "--server", "127.0.0.1:1") == .unavailable)
        let other = TestConsole()
        #expect(await other.run("tenant", "delete", "a", "--confirm=b", "--server", "127.0.0.1:1") == .declined)
    }

    @Test func `A file that is not there and an address that is none are mistakes on the command line`() async {
        let key = TestConsole()
        #expect(await key.run("server", "info", "--key-file", "/nonexistent/key") == .usage)
        #expect(key.said.contains("/nonexistent/key: No such file"))
        let folder = TestConsole()
        #expect(await folder.run("server", "info", "--key-file", "/") == .usage)
        let password = TestConsole()
        let words = ["account", "sign-in", "--email", "a@b.c", "--password-file", "/nonexistent/p"]
        #expect(await CommandLineTool.run(words, in: password.console) == .usage)
        let server = TestConsole()
        #expect(await server.run("server", "info", "--server", "auth.internal") == .usage)
        #expect(server.said.contains("\"auth.internal\" is not host:port"))
    }

    @Test func `A password rule that is none is answered with those there are`() async {
        let test = TestConsole()
        #expect(await test.run("tenant", "update", "acme", "--password-policy", "min=8,emoji") == .usage)
        #expect(test.said.contains("there is no rule emoji\nthe rules are min=8, lowercase, uppercase, digit, symbol"))
    }

    @Test func `A token is shown without a server`() async {
        let test = TestConsole(input: "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1MSIsImV4cCI6MX0.\n")
        #expect(await test.run("token", "decode", "-") == .ok)
        #expect(test.written == "header.alg   none\npayload.sub  u1\npayload.exp  1\n")
        #expect(test.said.contains("not verified"))
        let broken = TestConsole()
        #expect(await broken.run("token", "decode", "a.b") == .general)
    }

    @Test func `Settings that are named make the mask, the others stay out of it`() throws {
        let arguments = Arguments(values: [
            "disabled-user-signup": "true", "disabled-user-deletion": "false", "refresh-mode": "reuse",
            "session-idle": "1d", "guidance-message": "Ask", "allow-international-email": "true",
        ])
        let settings = try TenantSettings(arguments)
        #expect(
            settings.paths == [
                "allow_international_email", "refresh_mode", "session_idle_seconds",
                "client.permissions.disabled_user_signup", "client.permissions.disabled_user_deletion", "guidance",
            ])
        #expect(settings.tenant.client?.permissions == ClientPermissions(disabledUserSignup: true))
        #expect(settings.tenant.refreshMode == .reuse && settings.tenant.allowInternationalEmail)
        #expect(settings.tenant.sessionIdleSeconds == 86_400)
        #expect(settings.isGuidancePartial)
        #expect(try TenantSettings(Arguments()).paths.isEmpty)
    }

    @Test func `Contexts are kept in a file of their owner's`() async throws {
        try await withTemporaryDirectory { path in try await keepContexts(in: path) }
    }

    private func keepContexts(in path: String) async throws {
        let environment = ["XDG_CONFIG_HOME": path, "HOME": "/nonexistent"]
        func run(_ words: String...) async -> (ExitCode, String) {
            let test = TestConsole(environment: environment)
            return (await CommandLineTool.run(words, in: test.console), test.written)
        }
        let first = TestConsole(environment: environment)
        #expect(await first.run("context", "add", "dev", "--server", "127.0.0.1:1", "-t", "acme") == .ok)
        let currentNow = "it is the only one, so it is the current context now: commands go to 127.0.0.1:1\n"
        #expect(first.said.hasSuffix(currentNow), "\(first.said)")
        let second = TestConsole(environment: environment)
        #expect(await second.run("context", "add", "prod", "--server", "auth:7400", "--key-file", "/k") == .ok)
        #expect(!second.said.contains("current"), "\(second.said)")
        #expect(await run("context", "list", "-q").1 == "dev\nprod\n")
        #expect(await run("context", "show", "-q").1 == "dev\n")
        #expect(await run("context", "use", "prod").0 == .ok)
        let file = try ContextFile(environment: environment)
        #expect(file.current == "prod")
        #expect(file["prod"] == .init(name: "prod", server: "auth:7400", tenant: "", apiKeyFile: "/k"))
        #expect(file["dev"]?.tenant == "acme")
        // A context is not replaced by mistake, and the command says which key file is no longer used.
        #expect(await run("context", "add", "prod", "--server", "auth:7401").0 == .conflict)
        #expect(try ContextFile(environment: environment)["prod"]?.server == "auth:7400")
        let again = TestConsole(environment: environment)
        #expect(await again.run("context", "add", "prod", "--server", "auth:7401", "--replace") == .ok)
        #expect(again.said.contains("it no longer uses the key file /k"), "\(again.said)")
        #expect(try ContextFile(environment: environment)["prod"]?.server == "auth:7401")
        // The current context says which server; the flag outranks it.
        let test = TestConsole(environment: environment)
        #expect(await test.run("server", "info", "--context", "dev") == .unavailable)
        #expect(test.said.contains("127.0.0.1:1"))
        #expect(await run("context", "use", "none").0 == .notFound)
        #expect(await run("context", "rm", "prod").0 == .ok)
        #expect(await run("context", "show").0 == .notFound)
    }

    @Test func `Variables that come before the current context are named`() async throws {
        try await withTemporaryDirectory { path in
            let plain = ["XDG_CONFIG_HOME": path, "HOME": "/nonexistent"]
            func said(_ words: [String], _ more: [String: String] = [:]) async -> String {
                let test = TestConsole(environment: plain.merging(more) { $1 })
                #expect(await CommandLineTool.run(words, in: test.console) == .ok)
                return test.said
            }
            _ = await said(["context", "add", "stage", "--server", "stage:7400", "-t", "acme", "--key-file", "/k"])
            for words in [["context", "use", "stage"], ["context", "show"], ["context", "list"]] {
                let alone = await said(words)
                let same = ["POSTERN_SERVER": "stage:7400", "POSTERN_TENANT": "acme", "POSTERN_KEY_FILE": "/k"]
                let repeated = await said(words, same)
                #expect(!alone.contains("comes first") && !repeated.contains("comes first"), "\(alone)\(repeated)")
                let elsewhere = await said(words, ["POSTERN_SERVER": "live:7400"])
                #expect(elsewhere.contains("POSTERN_SERVER is set and comes first: commands go to live:7400"))
                let other = await said(words, ["POSTERN_TENANT": "", "POSTERN_KEY_FILE": "/other"])
                #expect(other.contains("POSTERN_TENANT is set and comes first: the default pool"), "\(other)")
                #expect(other.contains("POSTERN_KEY_FILE is set and comes first: /other"), "\(other)")
                let encrypted = await said(words, ["POSTERN_TLS": "true", "POSTERN_CA_FILE": "/ca.pem"])
                let names = "set and come first for TLS: POSTERN_TLS, POSTERN_CA_FILE\n"
                #expect(encrypted.contains(names), "\(encrypted)")
                let misspelt = await said(words, ["POSTERN_TLS": "1"])
                #expect(misspelt.contains("commands are refused: POSTERN_TLS is true or false"), "\(misspelt)")
            }
            let named = await said(["context", "show", "stage"], ["POSTERN_SERVER": "live:7400"])
            #expect(!named.contains("comes first"))
        }
    }

    @Test func `The methods, the exit codes and what completes a word are known without a server`() async {
        let methods = TestConsole()
        #expect(await methods.run("rpc", "list", "-q") == .ok)
        #expect(methods.written.contains("postern.v1.Accounts/SignUp\n"))
        #expect(methods.written.contains("grpc.health.v1.Health/Check\n"))
        let codes = TestConsole()
        #expect(await codes.run("help", "exit-codes") == .ok)
        #expect(codes.written.contains("  7    some rows were rejected, or some users not found or not changed\n"))
        let completion = TestConsole()
        #expect(await completion.run("completion", "words", "--", "tenant", "u") == .ok)
        #expect(completion.written == "update\nusage\n")
    }
}
