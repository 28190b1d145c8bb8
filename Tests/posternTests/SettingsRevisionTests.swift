import Base
import TestSupport
import Testing

@testable import postern

/// Two admins change the same settings: the second one is told.
@Suite struct SettingsRevisionTests {
    @Test func `A change over another revision than the present one is refused`() async throws {
        try await withServer { server in
            let text = "\(server.directory)/text"
            writeFile(text, [UInt8]("Go to %LINK%".utf8))
            let template = [
                "email-config", "set-template", "password-reset", "--subject", "s", "--text-file", text,
                "--html-file", text,
            ]
            // Nobody has changed the settings, then somebody has, once.
            for words in [
                ["email-config", "update", "--sender-name", "a"], template,
                ["sms-config", "update", "--text", "%CODE%"],
                ["hook-config", "update", "before-create", "--url", "none"],
            ] {
                let revision = words == template ? "1" : "0"
                let made = await TestConsole.run(words + ["--if-revision", revision], on: server)
                #expect(made.code == .ok, "\(made)")
                let refused = await TestConsole.run(words + ["--if-revision", revision], on: server)
                #expect(refused.code != .ok && refused.said.contains("REVISION_MISMATCH"), "\(refused)")
            }
            // Without the flag it says which revision it has read.
            #expect(await TestConsole.run(template, on: server).code == .ok)
        }
    }
}
