import Base
import JSON
import Messages
import Reactor
import Rules
import Store
import Synchronization
import TestSupport
import Testing

@testable import Identity

/// What the hooks are told of the user, and what they may change in the account.
extension BlockingHookTests {
    private static let allowed = #"{"allow":true}"#

    private static func runAllowing(_ body: (Scene) async throws -> Void) async throws {
        try await run { scene in
            for hook in ["before_create", "before_sign_in"] { scene.script.set(hook, allowed) }
            try await body(scene)
        }
    }

    // MARK: The question

    @Test func `Hooks are told of a new user what its provider says`() async throws {
        try await Self.runAllowing { scene in
            try scene.update(["before_create", "before_sign_in"])
            _ = try scene.identity.signIn(.google())
            #expect(scene.script.asked.count == 2)
            for asked in scene.script.asked {
                let user = asked["user"]
                #expect(user?["email"]?.string == "ada@gmail.com" && user?["email_verified"]?.bool == true)
                #expect(user?["display_name"]?.string == "Ada at Google")
                #expect(user?["photo_url"]?.string == "https://g.example/ada")
                let provider = user?["providers"]?.array?.first
                #expect(provider?["provider_id"]?.string == "google.com" && provider?["raw_id"]?.string == "g-1")
            }
            // This provider is not trusted for the email.
            _ = try scene.identity.signIn(.facebook(email: "bob@example.com"))
            let user = scene.script.asked.last?["user"]
            #expect(user?["email"]?.string == "bob@example.com" && user?["email_verified"]?.bool == false)
        }
    }

    @Test func `Hooks are told that a sign-in link proves the email`() async throws {
        try await Self.runAllowing { scene in
            let client = scene.identity
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            // Ann has an account, whose email nobody has proved yet; Bob has none.
            _ = try client.signUp("ann@example.com")
            try scene.update(["before_create", "before_sign_in"])
            for email in ["ann@example.com", "bob@example.com"] as [Text] {
                try client.sendOob(.emailSignin, email: email)
                _ = try client.signIn(email, link: try #require(try client.mails().first).code)
            }
            let asked = scene.script.asked
            #expect(asked.map { $0["hook"]?.string } == ["before_sign_in", "before_create", "before_sign_in"])
            #expect(asked.allSatisfy { $0["user"]?["email_verified"]?.bool == true })
        }
    }

    @Test func `The second hook is told of what the first one changes`() async throws {
        try await Self.runAllowing { scene in
            try scene.update(["before_create", "before_sign_in"])
            scene.script.set(
                "before_create",
                #"{"allow":true,"display_name":"By hook","photo_url":"https://a.example/p","#
                    + #""custom_claims":{"plan":"pro"}}"#)
            _ = try scene.identity.signUp("ann@example.com")
            let user = try #require(scene.script.asked.last?["user"])
            #expect(user["display_name"]?.string == "By hook" && user["custom_claims"]?["plan"]?.string == "pro")
            // The entry of the password repeats what the account says.
            let password = try #require(user["providers"]?.array?.first)
            #expect(password["provider_id"]?.string == "password" && password["email"]?.string == "ann@example.com")
            #expect(password["display_name"]?.string == "By hook")
            #expect(password["photo_url"]?.string == "https://a.example/p")
        }
    }

    @Test func `Nobody asks about the session of a user whom the first hook disables`() async throws {
        try await Self.runAllowing { scene in
            try scene.update(["before_create", "before_sign_in"])
            scene.script.set("before_create", #"{"allow":true,"disabled":true}"#)
            scene.script.set("before_sign_in", #"{"allow":false}"#)
            expectRefusal("USER_DISABLED") { _ = try scene.identity.signUp("ann@example.com") }
            #expect(scene.script.asked.map { $0["hook"]?.string } == ["before_create"])
            #expect(try scene.userCount() == 1)
        }
    }

    // MARK: The answer

    @Test func `A hook sets the photo and says whether the email is verified`() async throws {
        try await Self.runAllowing { scene in
            let client = scene.identity
            try scene.update(["before_sign_in"])
            scene.script.set(
                "before_sign_in",
                #"{"allow":true,"display_name":"By hook","photo_url":"https://a.example/p","email_verified":true}"#)
            let made = try #require(try client.signUp("ann@example.com").user)
            #expect(made.photoURL == "https://a.example/p" && made.emailVerified)
            let password = try #require(made.providers.first)
            #expect(password.displayName == "By hook" && password.photoURL == "https://a.example/p")
            scene.script.set("before_sign_in", #"{"allow":true,"photo_url":"","email_verified":false}"#)
            let signedIn = try client.signIn("ann@example.com")
            #expect(signedIn.user?.photoURL == "" && signedIn.user?.emailVerified == false)
            #expect(try scene.claims(signedIn.tokens?.idToken)["email_verified"]?.bool == false)
            // A user without an email stays without a verified one.
            scene.script.set("before_sign_in", #"{"allow":true,"email_verified":true}"#)
            #expect(try client.signIn(customTokenFor: "bob").user?.emailVerified == false)
            for answer in [#"{"allow":true,"photo_url":"x"}"#, #"{"allow":true,"email_verified":"yes"}"#] {
                scene.script.set("before_sign_in", answer)
                expectRefusal("HOOK_FAILED") { _ = try client.signIn("ann@example.com") }
            }
        }
    }

    // MARK: A user who changes while the hook is asked

    /// An admin changes the user when the hook's endpoint is asked the first time. `body` signs the user in.
    private static func runChanging(
        _ path: Text, _ change: @escaping @Sendable (inout UsersUpdateRequest) -> Void,
        answering answer: @escaping @Sendable (_ user: JSONValue) -> String,
        _ body: (_ client: IdentityClient, _ uid: Text) throws -> Void
    ) async throws {
        try await run { scene in
            let server = scene.identity.server
            let uid = try #require(try scene.identity.signUp("ann@example.com").user?.uid)
            let isChanged = Flag()
            let endpoint = FakeHTTPServer { request in
                let user = (try? JSONValue(parsing: request.body))?["user"] ?? .null
                if !isChanged.isSet {
                    isChanged.set()
                    do { try IdentityClient(server).update(uid, [path], change) } catch { Issue.record(error) }
                }
                let bytes = [UInt8](answer(user).utf8)
                return .response(HTTPResponse(contentType: "application/json", body: bytes))
            }
            defer { endpoint.close() }
            try scene.update(["before_sign_in"], url: Text("\(endpoint.url)/hook"))
            try body(scene.identity, uid)
            #expect(endpoint.requestCount("/hook") == 2)
        }
    }

    @Test func `What a hook says of an email does not count for the next one`() async throws {
        try await Self.runChanging("email") {
            $0.email = "eve@example.com"
        } answering: { user in
            let isAnn = user["email"]?.string == "ann@example.com"
            return isAnn ? #"{"allow":true,"email_verified":true}"# : #"{"allow":true}"#
        } _: { client, uid in
            let user = try client.signIn(customTokenFor: uid).user
            #expect(user?.email == "eve@example.com" && user?.emailVerified == false)
        }
    }

    @Test func `A hook that allows an email does not allow the next one`() async throws {
        try await Self.runChanging("email") {
            $0.email = "eve@example.com"
        } answering: { user in
            user["email"]?.string == "ann@example.com" ? #"{"allow":true}"# : #"{"allow":false}"#
        } _: { client, uid in
            expectRefusal("BLOCKED_BY_HOOK") { _ = try client.signIn(customTokenFor: uid) }
        }
    }

    @Test func `A hook that allows a phone number does not allow the next one`() async throws {
        let next: Text = "+14155550166"
        try await Self.runChanging("phone_number") {
            $0.phoneNumber = next
        } answering: { user in
            user["phone_number"]?.text == next ? #"{"allow":false}"# : #"{"allow":true}"#
        } _: { client, uid in
            expectRefusal("BLOCKED_BY_HOOK") { _ = try client.signIn(customTokenFor: uid) }
        }
    }

    /// The hook adds a claim to those that it is told.
    @Test func `A claim that is taken away while a hook is asked does not come back`() async throws {
        try await Self.runChanging("custom_claims_json") {
            $0.customClaimsJSON = []
        } answering: { user in
            let isAdmin = user["custom_claims"]?["admin"]?.bool == true
            let claims = isAdmin ? #"{"admin":true,"asked":true}"# : #"{"asked":true}"#
            return #"{"allow":true,"custom_claims":\#(claims)}"#
        } _: { client, uid in
            try client.update(uid, ["custom_claims_json"]) { $0.customClaimsJSON = [UInt8](#"{"admin":true}"#.utf8) }
            _ = try client.signIn(customTokenFor: uid)
            #expect(try client.get(uid).customClaimsJSON == [UInt8](#"{"asked":true}"#.utf8))
        }
    }

    // MARK: The log

    @Test func `The log says in words why a hook failed`() async throws {
        let lines = Mutex<[String]>([])
        let log = Log(level: .warning) { line in
            lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
        }
        try await withServer(log: log) { server in
            let scene = Scene(
                identity: try IdentityClient(server), script: Script(), url: "https://127.0.0.1:1/hook")
            _ = try scene.identity.signUp("ann@example.com")
            try scene.update(["before_sign_in"])
            // Such a URL could be set by an earlier version.
            try await server.project.store.write { transaction in
                var stored = try #require(try transaction.get(Tables.hookConfigs, TenantPrefix("")))
                stored.config?.allowPrivateAddresses = false
                try transaction.put(Tables.hookConfigs, TenantPrefix(""), stored)
            }
            expectRefusal("HOOK_FAILED") { _ = try scene.identity.signIn("ann@example.com") }
        }
        let said = lines.withLock { $0 }.filter { $0.contains("a hook failed") }
        #expect(said.count == 1 && said.allSatisfy { $0.contains("which needs allow_private_addresses") }, "\(said)")
    }
}
