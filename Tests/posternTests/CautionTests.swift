import Base
import TestSupport
import Testing

@testable import postern

/// What is asked, warned of or refused before something goes wrong silently.
@Suite struct CautionTests {
    @Test(
        arguments: [
            ("sms-config", "webhook-secret-file", "webhook-url"),
            ("email-config", "webhook-secret-file", "webhook-url"),
            ("email-config", "smtp-password-file", "smtp-server"), ("email-config", "smtp-username", "smtp-server"),
            ("email-config", "smtp-security", "smtp-server"),
        ])
    func `A flag that needs another one is not ignored`(group: String, flag: String, main: String) async {
        let test = TestConsole()
        let words = [group, "update", "--delivery", "outbox", "--\(flag)", "tls", "--server", "127.0.0.1:1"]
        #expect(await CommandLineTool.run(words, in: test.console) == .usage)
        #expect(test.said.contains("--\(flag) needs --\(main)\n"), "\(test.said)")
    }

    @Test(arguments: ["--suspended", "--disable-auth"])
    func `To refuse everybody is asked first`(flag: String) async {
        let update = ["tenant", "update", "acme", "--server", "127.0.0.1:1", flag]
        let no = TestConsole(answers: ["n"])
        #expect(await CommandLineTool.run(update + ["true"], in: no.console) == .declined)
        let silent = TestConsole()
        #expect(await CommandLineTool.run(update + ["true"], in: silent.console) == .usage)
        let yes = TestConsole()
        #expect(await CommandLineTool.run(update + ["true", "-y"], in: yes.console) == .unavailable)
        let end = TestConsole()
        #expect(await CommandLineTool.run(update + ["false"], in: end.console) == .unavailable)
    }

    @Test(
        arguments: [
            ["service-account", "key", "create", "shop", "--key-out", "-", "--lifetime"],
            ["service-account", "key", "upload", "shop", "-", "--lifetime"], ["token", "mint", "u1", "--lifetime"],
            ["token", "create-cookie", "t", "--valid-for"], ["apikey", "rotate", "k", "--overlap"],
            ["key", "rotate", "--publish-ahead"],
        ])
    func `A duration below a second does not become its opposite`(words: [String]) async {
        func code(_ duration: String) async -> ExitCode {
            let line = words + [duration, "--server", "127.0.0.1:1", "-y"]
            return await CommandLineTool.run(line, in: TestConsole(input: "x").console)
        }
        #expect(await code("500ms") == .usage)
        #expect(await code("5m") == .unavailable)
        let refusesZero = words.last == "--lifetime" || words.last == "--valid-for"
        if refusesZero { #expect(await code("0") == .usage) }
    }

    /// Such as of a script's variable that is not set.
    @Test(arguments: ["--server", "--key-file", "--ca-file", "--server-name", "--cert", "--key"])
    func `An empty flag does not lead to another server or key, or to plain text`(flag: String) async {
        for words in [["tenant", "list"], ["context", "add", "live"]] {
            let test = TestConsole()
            let line = words + (flag == "--server" ? [] : ["--server", "127.0.0.1:1"]) + [flag, ""]
            #expect(await CommandLineTool.run(line, in: test.console) == .usage)
            #expect(test.said.contains("\(flag) is empty"), "\(test.said)")
        }
    }

    @Test func `A tenant is not made without its template`() async {
        let test = TestConsole()
        let line = ["tenant", "create", "acme", "--template", "", "--server", "127.0.0.1:1"]
        #expect(await CommandLineTool.run(line, in: test.console) == .usage)
        #expect(test.said.contains("--template is empty"), "\(test.said)")
    }

    @Test func `A timeout of 0 is refused before anything is sent`() async {
        func code(_ timeout: String) async -> ExitCode {
            let line = ["tenant", "list", "--timeout", timeout, "--server", "127.0.0.1:1"]
            return await CommandLineTool.run(line, in: TestConsole().console)
        }
        #expect(await code("0") == .usage)
        #expect(await code("0ms") == .usage)
        #expect(await code("-1s") == .usage)
        #expect(await code("500ms") == .unavailable)
    }

    @Test func `A hook's deadline of 0 does not become the default`() async {
        func code(_ deadline: String) async -> ExitCode {
            let hook = ["hook-config", "update", "before-sign-in", "--url", "https://acme.example/hook"]
            let line = hook + ["--deadline", deadline, "--server", "127.0.0.1:1"]
            return await CommandLineTool.run(line, in: TestConsole().console)
        }
        #expect(await code("0") == .usage)
        #expect(await code("0ms") == .usage)
        #expect(await code("500ms") == .unavailable)
    }

    @Test func `A key that crosses the network in clear is warned of, once`() async throws {
        try await withTemporaryDirectory { directory in
            writeFile("\(directory)/key", [UInt8]("pk_a_b\n".utf8))
            let warning = "warning: the key crosses the network in clear: use --tls\n"
            func said(_ server: String, _ more: [String]) async -> String {
                let test = TestConsole()
                _ = await CommandLineTool.run(["tenant", "list", "--server", server] + more, in: test.console)
                return test.said
            }
            let key = ["--key-file", "\(directory)/key"]
            // An address that is not known to be this machine's, and at which nothing answers.
            let there = await said("0.0.0.0:1", key)
            #expect(there.split(separator: warning, omittingEmptySubsequences: false).count == 2, "\(there)")
            let quiet = await said("0.0.0.0:1", key + ["-q"])
            #expect(quiet.contains(warning), "\(quiet)")
            for format in ["json", "ndjson"] {
                let text = await said("0.0.0.0:1", key + ["-o", format])
                let line = "{\"warning\":\"the key crosses the network in clear: use --tls\"}\n"
                #expect(text.hasPrefix(line) && !text.contains(warning), "\(format): \(text)")
            }
            for words in [[], key + ["--tls"]] {
                let text = await said("0.0.0.0:1", words)
                #expect(!text.contains(warning), "\(words): \(text)")
            }
            for here in ["127.0.0.1:1", "[::1]:1", "unix:\(directory)/socket"] {
                let text = await said(here, key)
                #expect(!text.contains(warning), "\(here): \(text)")
            }
        }
    }

    @Test func `A trial tells of a wrong --confirm, and a deleted tenant is not to be made again`() async throws {
        try await withServer { server in
            func run(_ words: String...) async -> TestConsole.Outcome { await TestConsole.run(words, on: server) }
            #expect(await run("tenant", "create", "acme").code == .ok)
            let delete = ["tenant", "delete", "acme"]
            let wrong = await TestConsole.run(delete + ["--dry-run", "--confirm", "acne"], on: server)
            #expect(wrong.code == .declined && wrong.said.contains("--confirm says \"acne\""), "\(wrong.said)")
            for trial in [["--dry-run"], ["--dry-run", "--confirm", "acme"]] {
                #expect(await TestConsole.run(delete + trial, on: server).code == .ok)
            }
            #expect(await run("tenant", "delete", "acme", "--confirm", "acme").code == .ok)
            let gone = await run("tenant", "get", "acme")
            #expect(gone.code == .notFound && gone.said.contains("an id is never used again"), "\(gone.said)")
        }
    }
}
