import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing

/// A sign-in that is refused leaves its proof as good as it was: each proof that counts once × each refusal that comes
/// after the proof was found right.
@Suite struct KeptProofTests {
    private static let number: Text = "+14155550166"
    private static let email: Text = "ada@example.com"

    enum Proof: CaseIterable {
        case customToken, trustedPendingToken, untrustedPendingToken, phoneCode, temporaryProof, emailLink

        var reasonOfSecondUse: String {
            switch self {
            case .customToken: "INVALID_CUSTOM_TOKEN"
            case .trustedPendingToken, .untrustedPendingToken: "INVALID_PENDING_TOKEN"
            case .phoneCode: "INVALID_SESSION_INFO"
            case .temporaryProof: "INVALID_TEMPORARY_PROOF"
            case .emailLink: "INVALID_OOB_CODE"
            }
        }
    }

    enum Refusal: CaseIterable {
        case toggle
        /// Sign-up is switched off between the call's admission and its transaction.
        case toggleMeanwhile
        case hook, failedHook, disabledUser

        var reason: String {
            switch self {
            case .toggle, .toggleMeanwhile: "ADMIN_RESTRICTED_OPERATION"
            case .hook: "BLOCKED_BY_HOOK"
            case .failedHook: "HOOK_FAILED"
            case .disabledUser: "USER_DISABLED"
            }
        }
    }

    @Test(arguments: Proof.allCases, Refusal.allCases)
    func `A refused sign-in does not use its proof up`(_ proof: Proof, _ refusal: Refusal) async throws {
        try await BlockingHookTests.run { scene in
            let client = scene.identity
            try client.allowEveryMethod()
            let signIn = try Self.made(proof, client, isKnown: refusal == .disabledUser)
            try Self.refuse(refusal, scene, signIn)
            expectRefusal(proof.reasonOfSecondUse) { try signIn() }
        }
    }

    /// Has `signIn` refused, takes the reason away, and signs in.
    private static func refuse(
        _ refusal: Refusal, _ scene: BlockingHookTests.Scene, _ signIn: @escaping () throws -> Void
    ) throws {
        let client = scene.identity
        let (server, store) = (client.server, client.server.project.store)
        let before = try scene.userCount()
        func signInTwice(_ lift: () throws -> Void) throws {
            let reruns = try store.statistics().reruns
            expectRefusal(refusal.reason) { try signIn() }
            // Nothing was changed and taken back, which would have run other users' writes again.
            #expect(try store.statistics().reruns == reruns)
            #expect(try scene.userCount() == before)
            try lift()
            try signIn()
        }
        func setSignUp(off isOff: Bool) throws { try ToggleTests.set(client.client, signup: isOff, deletion: false) }
        switch refusal {
        case .toggle:
            try setSignUp(off: true)
            try signInTwice { try setSignUp(off: false) }
        case .toggleMeanwhile:
            let wasAsked = BlockingHookTests.Flag()
            let hook = ActingHook(point: \.beforeCreate, field: "before_create") {
                guard !wasAsked.isSet else { return }
                wasAsked.set()
                try ToggleTests.set(try server.connect(), signup: true, deletion: false)
            }
            try hook.run(client) { try signInTwice { try setSignUp(off: false) } }
        case .hook, .failedHook:
            try scene.update(["before_sign_in"])
            if refusal == .hook {
                scene.script.set("before_sign_in", #"{"allow":false}"#)
            } else {
                scene.script.set("before_sign_in", #"{"allow":true}"#, status: 500)
            }
            try signInTwice { scene.script.set("before_sign_in", #"{"allow":true}"#) }
        case .disabledUser:
            let page: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
            // The proof's user was made first.
            let uid = try #require(page.users.min { $0.createdAtMicros < $1.createdAtMicros }?.uid)
            try client.update(uid, ["disabled"]) { $0.disabled = true }
            try signInTwice { try client.update(uid, ["disabled"]) { $0.disabled = false } }
        }
    }

    /// A sign-in with a proof that was made just now. `isKnown`: whether its user has an account.
    private static func made(
        _ proof: Proof, _ client: IdentityClient, isKnown: Bool
    ) throws -> () throws -> Void {
        switch proof {
        case .customToken:
            if isKnown { _ = try client.signIn(customTokenFor: "ada") }
            let token = try client.customToken(for: "ada")
            return {
                let _: AccountsSignInWithCustomTokenResponse = try client.client.call(
                    "postern.v1.Accounts/SignInWithCustomToken", AccountsSignInWithCustomTokenRequest(token: token))
            }
        case .trustedPendingToken: return try made(.google(email: email), client, isKnown: isKnown)
        case .untrustedPendingToken: return try made(.github(email: email), client, isKnown: isKnown)
        case .phoneCode:
            if isKnown { _ = try client.signIn(phone: number) }
            let code = try client.code(to: number)
            return { _ = try client.signIn(code) }
        case .temporaryProof:
            let owner = try #require(try client.signIn(phone: number).user).uid
            client.server.clock.advance(by: .seconds(1))
            let guest = try #require(try client.signUp().tokens)
            let refused = failure { _ = try client.signIn(try client.code(to: number), linkingTo: guest.idToken) }
            let token = Text(try #require(refused.metadata("temporary_proof")))
            if !isKnown {
                let _: UsersDeleteResponse = try client.client.call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(uid: owner))
            }
            return { _ = try client.signIn(temporaryProof: token, number) }
        case .emailLink:
            if isKnown {
                try client.sendOob(.emailSignin, email: email)
                _ = try client.signIn(email, link: try client.mails()[0].code)
            }
            try client.sendOob(.emailSignin, email: email)
            let code = try client.mails()[0].code
            return { _ = try client.signIn(email, link: code) }
        }
    }

    private static func made(
        _ identity: FederatedIdentity, _ client: IdentityClient, isKnown: Bool
    ) throws -> () throws -> Void {
        if isKnown { _ = try client.signIn(identity) }
        let credential = client.credential(identity)
        return {
            let _: AccountsSignInWithIdpResponse = try client.client.call(
                "postern.v1.Accounts/SignInWithIdp", AccountsSignInWithIdpRequest(credential: credential))
        }
    }
}
