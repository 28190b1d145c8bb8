import Base
import Messages
import TestSupport
import Testing

/// Second factors become mandatory, and the sessions without one end, while a sign-in is on its way.
@Suite struct MandatoryFactorRaceTests {
    /// Runs `body` with hooks that throw the switch before they answer.
    private static func run(_ body: (IdentityClient) throws -> Void) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.verifiedUser("ada@example.com")
            try client.setFactors(.enabled)
            let hook = ActingHook(point: \.beforeSignIn, field: "before_sign_in") {
                try Self.makeMandatory(try IdentityClient(server))
            }
            try hook.run(client) { try body(client) }
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
