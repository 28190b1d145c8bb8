import Base
import Messages
import Reactor
import TestSupport
import Testing

/// Second factors become mandatory, and the sessions without one end, while a sign-in is on its way.
@Suite struct MandatoryFactorRaceTests {
    /// Runs `body` with hooks that throw the switch before they answer.
    private static func run(_ body: (IdentityClient) throws -> Void) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let endpoint = FakeHTTPServer { _ in
                do {
                    try Self.makeMandatory(try IdentityClient(server))
                } catch {
                    Issue.record(error)
                }
                return .response(
                    HTTPResponse(contentType: "application/json", body: [UInt8](#"{"allow":true}"#.utf8)))
            }
            defer { endpoint.close() }
            _ = try client.verifiedUser("ada@example.com")
            try client.setFactors(.enabled)
            let secret = Secret([UInt8](repeating: 7, count: 32))
            let hook = Hook(webhook: WebhookConfig(url: Text(endpoint.url), signingSecret: secret))
            let _: HookConfigsUpdateResponse = try client.client.call(
                "postern.v1.HookConfigs/Update",
                HookConfigsUpdateRequest(
                    config: HookConfig(beforeSignIn: hook, allowPrivateAddresses: true),
                    updateMask: ProtobufFieldMask(paths: ["before_sign_in", "allow_private_addresses"])))
            try body(client)
        }
    }

    private static func makeMandatory(_ admin: IdentityClient) throws {
        let _: TenantsUpdateResponse = try admin.client.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(
                tenant: Messages.Tenant(secondFactorState: .mandatory),
                updateMask: ProtobufFieldMask(paths: ["second_factor_state"]), endSessionsWithoutSecondFactor: true))
    }

    @Test func aSignInThatWasAdmittedBeforeWaitsForAFactor() async throws {
        try await Self.run { client in
            expectRefusal("SECOND_FACTOR_ENROLLMENT_REQUIRED") { _ = try client.signIn("ada@example.com") }
        }
    }

    @Test func aSignUpThatWasAdmittedBeforeWaitsForAFactor() async throws {
        try await Self.run { client in
            expectRefusal("SECOND_FACTOR_ENROLLMENT_REQUIRED") { _ = try client.signUp("bob@example.com") }
            let bob = try client.find("bob@example.com")
            #expect(bob.email == "bob@example.com")
        }
    }
}
