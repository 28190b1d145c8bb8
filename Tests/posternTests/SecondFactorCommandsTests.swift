import Base
import JSON
import Messages
import PosternClient
import TestSupport
import Testing

@testable import postern

/// `postern user mfa …`, and the settings of a tenant that are about second factors.
@Suite struct SecondFactorCommandsTests {
    @Test func `Settings that are named make the mask`() throws {
        let settings = try TenantSettings(
            Arguments(values: ["second-factors": "mandatory", "allowed-second-factors": "totp,phone"]))
        #expect(settings.paths == ["second_factor_state", "allowed_second_factors"])
        #expect(settings.tenant.secondFactorState == .mandatory)
        #expect(settings.tenant.allowedSecondFactors == [.totp, .phone])
        let lifted = try TenantSettings(Arguments(values: ["allowed-second-factors": "none"]))
        #expect(lifted.paths == ["allowed_second_factors"] && lifted.tenant.allowedSecondFactors.isEmpty)
    }

    @Test(arguments: [["second-factors": "sometimes"], ["allowed-second-factors": "phone,mail"]])
    func `What is no setting is a wrong command line`(values: [String: String]) {
        let error = #expect(throws: CommandError.self) { try TenantSettings(Arguments(values: values)) }
        #expect(error?.exitCode == .usage)
    }

    @Test func `Removing names the factor or all, and asks first`() async {
        let server = ["--server", "127.0.0.1:1"]
        for words in [["u1"], ["u1", "f1", "--all"]] {
            let test = TestConsole()
            let code = await CommandLineTool.run(["user", "mfa", "remove"] + words + server, in: test.console)
            #expect(code == .usage, "\(words)")
        }
        let no = TestConsole(answers: ["n"])
        #expect(await no.run("user", "mfa", "remove", "u1", "--all", "--server", "127.0.0.1:1") == .declined)
    }

    @Test func `A refusal for want of a second factor shows no credential`() {
        let test = TestConsole()
        let failure = Failure(
            .failedPrecondition, "SECOND_FACTOR_REQUIRED", "Show a factor.",
            metadata: [.init("pending_credential", "s3cret"), .init("second_factors", "[]")])
        FailureReport(failure, at: nil).print(.table, to: test.console)
        #expect(!test.said.contains("s3cret") && test.said.contains("postern user mfa remove"))
        #expect(test.said.contains("docs/signing-in.md#second-factors"), "\(test.said)")
        let enrollment = Failure(
            .failedPrecondition, "SECOND_FACTOR_ENROLLMENT_REQUIRED", "Add a factor.",
            metadata: [.init("enrollment_credential", "s3cret")])
        FailureReport(enrollment, at: nil).print(.json, to: test.console)
        #expect(!test.said.contains("s3cret"))
    }

    @Test func `A factor is added, listed and removed`() async throws {
        try await withServer { server in
            let words = ["user", "create", "--uid", "u1", "--email", "ann@example.com", "--email-verified", "true"]
            #expect(await TestConsole.run(words, on: server).code == .ok)
            let added = await TestConsole.run(
                ["user", "mfa", "add-phone", "u1", "+1 415 555 0123", "--display-name", "work", "-q"], on: server)
            let factorID = added.written.split(separator: "\n").first.map(String.init) ?? ""
            #expect(added.code == .ok && !factorID.isEmpty, "\(added)")
            let listed = await TestConsole.run(["user", "mfa", "list", "u1", "-o", "json"], on: server)
            let factors = try JSONValue(parsing: [UInt8](listed.written.utf8)).array ?? []
            #expect(factors.map { $0["factor_id"] } == [.string(Text(factorID))], "\(listed)")
            #expect(factors.first?["phone_number"] == "+14155550123" && factors.first?["display_name"] == "work")
            let removed = await TestConsole.run(["user", "mfa", "remove", "u1", factorID], on: server)
            #expect(removed.code == .ok, "\(removed)")
            #expect(await TestConsole.run(["user", "mfa", "list", "u1", "-q"], on: server).written.isEmpty)
        }
    }

    @Test func `A tenant that requires second factors ends the sessions without`() async throws {
        try await withServer { server in
            let _: AccountsSignUpResponse = try server.connect().call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ann@example.com", password: Secret("correct horse")))
            let words = [
                "tenant", "update", "--second-factors", "mandatory", "--end-sessions-without-second-factor",
            ]
            let updated = await TestConsole.run(words, on: server)
            #expect(updated.code == .ok && updated.said.contains("sessions ended: 1"), "\(updated)")
        }
    }
}
