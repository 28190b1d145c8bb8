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
            for words in [[], key + ["--tls"], key + ["-q"], key + ["-o", "json"]] {
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
