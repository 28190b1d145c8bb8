import Base
import Messages
import Store
import TestSupport
import Testing
import Wire

/// What every mutation promises about its idempotency-key: a request is done once for each key and is answered alike
/// again, and another request under the key is refused. A mutation for which proto/ says `no_idempotency_key` is left
/// out.
enum RepeatedMutations {
    /// Changes by end users, which need a user and a credential of their own, and the suites that send them twice.
    static let provenElsewhere = [
        "postern.v1.Accounts/SignUp": "IdempotencyTests",
        "postern.v1.Accounts/SendOobCode": "IdempotencyTests",
        "postern.v1.Accounts/SignInWithPassword": "SecondFactorSignInTests",
        "postern.v1.Accounts/SignInWithIdp": "RepeatedChangeTests",
        "postern.v1.Accounts/Unlink": "RepeatedChangeTests",
        "postern.v1.Accounts/Reauthenticate": "RepeatedChangeTests",
        "postern.v1.Accounts/SignInWithEmailLink": "RepeatedCodeTests",
        "postern.v1.Accounts/SignInWithPhoneNumber": "RepeatedCodeTests",
        "postern.v1.Accounts/ApplyOobCode": "RepeatedMailCodeTests",
        "postern.v1.Accounts/ResetPassword": "RepeatedMailCodeTests",
        "postern.v1.Accounts/SignInWithCustomToken": "CustomTokenTests",
        "postern.v1.Accounts/FinalizeMfaEnrollment": "RepeatedFactorTests",
        "postern.v1.Accounts/FinalizeMfaSignIn": "RepeatedFactorTests",
        "postern.v1.Accounts/SendVerificationCode": "EveryMutationRepeatedTests",
        "postern.v1.Accounts/StartMfaEnrollment": "EveryMutationRepeatedTests",
        "postern.v1.Accounts/StartMfaSignIn": "EveryMutationRepeatedTests",
        "postern.v1.Accounts/WithdrawMfaEnrollment": "EveryMutationRepeatedTests",
        "postern.v1.Accounts/RenewRecoveryCodes": "EveryMutationRepeatedTests",
    ]

    /// Methods whose answer holds a secret, which is given once.
    static let tellingSecrets: Set<String> = [
        "postern.v1.Project/CreateApiKey", "postern.v1.Project/RotateApiKey",
        "postern.v1.Project/CreateServiceAccountKey", "postern.v1.Users/GenerateOobLink",
        "postern.v1.Users/CreateCustomToken",
    ]

    /// By their full names.
    static let methods = PublishedMethod.all
        .filter { $0.isMutation && $0.noIdempotencyKey.isEmpty && provenElsewhere[$0.fullName] == nil }
        .map(\.fullName)

    /// Another request that means the same: a server ignores fields that it does not know.
    static func another(_ request: some Message) -> EncodedMessage {
        var other = EncodedMessage(request)
        other.append(1_000, 1)
        return other
    }
}

@Suite(.serialized) struct EveryMutationRepeatedTests {
    private static let key = [OutgoingMetadata.Entry(key: "idempotency-key", value: "k1")]

    @Test func `The exceptions are mutations, and a change over a revision is never repeated without a key`() {
        let known = Set(PublishedMethod.all.filter(\.isMutation).map(\.fullName))
        let unknown = Set(RepeatedMutations.provenElsewhere.keys).subtracting(known)
        #expect(unknown.isEmpty && RepeatedMutations.tellingSecrets.isSubset(of: RepeatedMutations.methods))
        let exceptions = PublishedMethod.all.filter { !$0.noIdempotencyKey.isEmpty }
        #expect(!exceptions.isEmpty && exceptions.allSatisfy(\.isMutation))
        let wrong = PublishedMethod.all.filter { $0.isIdempotent && $0.field(named: "expected_revision") != nil }
        #expect(wrong.isEmpty, "\(wrong.map(\.fullName))")
    }

    @Test(arguments: RepeatedMutations.methods) func `A change is made once for each key`(_ method: String) async throws
    {
        try await withServer { server in
            let scene = try await DryRunScene(server)
            let name = method.replacing("postern.v1.", with: "")
            let made = scene.request(name, validateOnly: false)
            let request = try #require(made, "\(name): write a request that changes something")
            func call(_ request: some Message) throws -> AnyMessage {
                try scene.client.call(method, request, metadata: Self.key)
            }
            let first = try call(request)
            let events = try scene.tables().filter { $0.name == "events" }
            server.clock.advance(by: .seconds(1))
            if RepeatedMutations.tellingSecrets.contains(method) {
                expectRefusal("ALREADY_DONE") { _ = try call(request) }
            } else {
                let again = try call(request)
                #expect(again == first)
            }
            let other = RepeatedMutations.another(request)
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try call(other) }
            let eventsAfter = try scene.tables().filter { $0.name == "events" }
            #expect(eventsAfter == events && !events.isEmpty)
        }
    }

    /// Sends the request twice with one key, and then another one. The first answer held a secret.
    private static func expectOnce(_ client: RawClient, _ method: String, _ request: some Message) throws {
        let _: AnyMessage = try client.call(method, request, metadata: key)
        expectRefusal("ALREADY_DONE", "\(method)") {
            let _: AnyMessage = try client.call(method, request, metadata: key)
        }
        let other = RepeatedMutations.another(request)
        expectRefusal("IDEMPOTENCY_KEY_REUSED", "\(method)") {
            let _: AnyMessage = try client.call(method, other, metadata: key)
        }
    }

    @Test func `A code by SMS, an enrollment and recovery codes are made once for each key`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            try Self.expectOnce(
                client.client, "postern.v1.Accounts/SendVerificationCode",
                AccountsSendVerificationCodeRequest(phoneNumber: "+14155550177"))
            try client.setFactors(.enabled)
            let user = try client.appUser()
            try Self.expectOnce(
                client.client, "postern.v1.Accounts/RenewRecoveryCodes",
                AccountsRenewRecoveryCodesRequest(idToken: user.tokens.idToken))
            let bob = try client.verifiedUser("bob@example.com")
            try Self.expectOnce(
                client.client, "postern.v1.Accounts/StartMfaEnrollment",
                AccountsStartMfaEnrollmentRequest(idToken: bob.idToken, factor: .totp(TotpEnrollment())))
            let phone = try client.enrollPhone("+14155550123", user.tokens.idToken)
            let pending = try client.pending(user)
            try Self.expectOnce(
                client.client, "postern.v1.Accounts/StartMfaSignIn",
                AccountsStartMfaSignInRequest(pendingCredential: pending, factorID: phone.factorID))
        }
    }

    @Test func `A factor is withdrawn once for each key`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let request = AccountsWithdrawMfaEnrollmentRequest(idToken: user.tokens.idToken, factorID: user.factorID)
            func withdraw(_ request: some Message) throws -> AccountsWithdrawMfaEnrollmentResponse {
                try client.client.call("postern.v1.Accounts/WithdrawMfaEnrollment", request, metadata: Self.key)
            }
            let first = try withdraw(request)
            let again = try withdraw(request)
            #expect(again.tokens?.refreshToken == first.tokens?.refreshToken && first.tokens != nil)
            let other = RepeatedMutations.another(request)
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try withdraw(other) }
        }
    }
}
