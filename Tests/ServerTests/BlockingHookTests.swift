import Base
import Crypto
import Glibc
import JSON
import Messages
import Reactor
import Rules
import Store
import Synchronization
import TestSupport
import Testing

@testable import Identity

/// A tenant's hooks, called over HTTP before users are made and sign in.
@Suite struct BlockingHookTests {
    static let secret = Secret([UInt8](repeating: 7, count: 32))

    /// The answers of an endpoint, by the hook's name, and the requests that it got.
    final class Script: Sendable {
        private let state = Mutex<(answers: [String: FakeHTTPServer.Reply], asked: [JSONValue], forged: Int)>(
            ([:], [], 0))

        var asked: [JSONValue] { state.withLock { $0.asked } }
        var forged: Int { state.withLock { $0.forged } }

        func set(_ hook: String, _ answer: String, status: Int = 200) {
            let response = HTTPResponse(
                status: status, contentType: "application/json", fields: [], body: [UInt8](answer.utf8))
            set(hook, .response(response))
        }

        func set(_ hook: String, _ reply: FakeHTTPServer.Reply) { state.withLock { $0.answers[hook] = reply } }

        func reply(to request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
            let json = (try? JSONValue(parsing: request.body)) ?? .null
            // t=<seconds>,v1=<hex>
            let parts = (request.fields["postern-signature"] ?? "").split(separator: ",")
            let time = parts.first?.dropFirst(2) ?? ""
            let signed = [UInt8]("\(time).".utf8) + request.body
            let expected = "v1=\(Hex.encode(HMACKey(BlockingHookTests.secret).tag(of: signed)))"
            return state.withLock { state in
                state.asked.append(json)
                if parts.last.map(String.init) != expected { state.forged += 1 }
                return state.answers[json["hook"]?.string ?? ""] ?? .silence
            }
        }
    }

    final class Flag: Sendable {
        private let state = Mutex(false)
        var isSet: Bool { state.withLock { $0 } }
        func set() { state.withLock { $0 = true } }
    }

    struct Scene {
        let identity: IdentityClient
        let script: Script
        let url: Text

        func update(
            _ hooks: [String], allowOnFailure: Bool = false, url: Text? = nil, timeoutMillis: Int32 = 0,
            secret: Secret = BlockingHookTests.secret, isPrivate: Bool = true
        ) throws {
            let hook = Hook(
                webhook: WebhookConfig(url: url ?? self.url, signingSecret: secret), timeoutMillis: timeoutMillis,
                allowOnFailure: allowOnFailure)
            var config = HookConfig(allowPrivateAddresses: isPrivate)
            if hooks.contains("before_create") { config.beforeCreate = hook }
            if hooks.contains("before_sign_in") { config.beforeSignIn = hook }
            let _: HookConfigsUpdateResponse = try identity.client.call(
                "postern.v1.HookConfigs/Update",
                HookConfigsUpdateRequest(
                    config: config,
                    updateMask: ProtobufFieldMask(paths: hooks.map { Text($0) } + ["allow_private_addresses"])))
        }

        func claims(_ idToken: Text?) throws -> JSONValue {
            let parts = (idToken ?? .empty).bytes.split(separator: UInt8(ascii: "."))
            return try JSONValue(parsing: Base64.url.decode(Array(parts[1])) ?? [])
        }

        func userCount() throws -> Int {
            let page: UsersListResponse = try identity.client.call("postern.v1.Users/List", UsersListRequest())
            return page.users.count
        }
    }

    static func run(log: Log = .silent, _ body: (Scene) async throws -> Void) async throws {
        let script = Script()
        let endpoint = FakeHTTPServer { script.reply(to: $0) }
        defer { endpoint.close() }
        try await withServer(log: log) { server in
            let scene = Scene(
                identity: try IdentityClient(server), script: script, url: Text("\(endpoint.url)/hook"))
            try await body(scene)
        }
    }

    @Test func hooksChangeWhatTheyMayAndAreAskedSigned() async throws {
        try await Self.run { scene in
            try scene.update(["before_create", "before_sign_in"])
            scene.script.set(
                "before_create", #"{"allow":true,"display_name":"By hook","custom_claims":{"plan":"pro"}}"#)
            scene.script.set("before_sign_in", #"{"allow":true,"session_claims":{"risk":"low"}}"#)
            let made = try scene.identity.signUp("ann@example.com")
            #expect(made.user?.displayName == "By hook")
            let claims = try scene.claims(made.tokens?.idToken)
            #expect(claims["plan"]?.string == "pro" && claims["risk"]?.string == "low")
            let again = try scene.identity.signIn("ann@example.com")
            #expect(try scene.claims(again.tokens?.idToken)["risk"]?.string == "low")
            let asked = scene.script.asked
            #expect(asked.map { $0["hook"]?.string } == ["before_create", "before_sign_in", "before_sign_in"])
            #expect(asked.map { $0["is_new_user"]?.bool } == [true, true, false])
            #expect(asked.allSatisfy { $0["user"]?["email"]?.string == "ann@example.com" })
            #expect(scene.script.forged == 0)
            // A sign-in with a wrong password calls no hook.
            expectRefusal("INVALID_LOGIN_CREDENTIALS") {
                _ = try scene.identity.signIn("ann@example.com", password: "wrong password")
            }
            #expect(scene.script.asked.count == 3)
        }
    }

    @Test func aRefusalLeavesNoAccountBehind() async throws {
        try await Self.run { scene in
            try scene.update(["before_create", "before_sign_in"])
            scene.script.set("before_create", #"{"allow":true}"#)
            scene.script.set("before_sign_in", #"{"allow":false,"message":"Ask the desk."}"#)
            let refused = failure { _ = try scene.identity.signUp("ann@example.com") }
            #expect(refused.reason == "BLOCKED_BY_HOOK" && refused.code == .permissionDenied)
            #expect(refused.metadata.contains(Failure.Entry("message", "Ask the desk.")))
            expectRefusal("BLOCKED_BY_HOOK") { _ = try scene.identity.signIn(.google()) }
            expectRefusal("BLOCKED_BY_HOOK") { _ = try scene.identity.signIn(customTokenFor: "bob") }
            #expect(try scene.userCount() == 0)
        }
    }

    /// A hook that repeats what an end user typed may have a line feed or too many bytes in its message.
    @Test func aRefusalCountsWhateverElseTheAnswerSays() async throws {
        try await Self.run { scene in
            _ = try scene.identity.signUp("ann@example.com")
            let long = String(repeating: "x", count: 513)
            let answers = [
                #"{"allow":false,"message":"Ask\nthe desk."}"#, #"{"allow":false,"message":"\#(long)"}"#,
                #"{"allow":false,"message":7}"#, #"{"allow":false,"message":null,"session_claims":[]}"#,
                #"{"allow":false,"custom_claims":{"sub":"eve"}}"#, #"{"allow":false,"disabled":"no"}"#,
            ]
            for isOpen in [false, true] {
                try scene.update(["before_sign_in"], allowOnFailure: isOpen)
                for answer in answers {
                    scene.script.set("before_sign_in", answer)
                    let refused = failure { _ = try scene.identity.signIn("ann@example.com") }
                    #expect(refused.reason == "BLOCKED_BY_HOOK", "\(answer.prefix(60)) \(isOpen)")
                    let shown = refused.metadata.first { $0.key == "message" }?.value ?? ""
                    #expect(shown.isEmpty, "a message that cannot be shown is left out: \(answer.prefix(60))")
                }
                // Each status of success is an answer.
                scene.script.set("before_sign_in", #"{"allow":false,"message":"Ask the desk."}"#, status: 201)
                expectRefusal("BLOCKED_BY_HOOK") { _ = try scene.identity.signIn("ann@example.com") }
            }
        }
    }

    @Test func whomAHookDisablesIsDisabledAndRefused() async throws {
        try await Self.run { scene in
            let made = try scene.identity.signUp("ann@example.com")
            let before = try scene.identity.find("ann@example.com")
            let signInCount = try Self.eventCount(scene.identity, before.uid, .signedIn)
            scene.identity.server.clock.advance(by: .seconds(60))
            try scene.update(["before_sign_in"])
            scene.script.set("before_sign_in", #"{"allow":true,"disabled":true}"#)
            for email in ["ann@example.com", "bob@example.com"] as [Text] {
                expectRefusal("USER_DISABLED") {
                    if email == "bob@example.com" {
                        _ = try scene.identity.signUp(email)
                    } else {
                        _ = try scene.identity.signIn(email)
                    }
                }
            }
            let ann = try scene.identity.get(before.uid)
            let bob = try scene.identity.find("bob@example.com")
            #expect(try ann.disabled && bob.disabled && scene.userCount() == 2)
            // Nobody was signed in, and the log says why the users are disabled.
            #expect(ann.lastSignInAtMicros == before.lastSignInAtMicros && bob.lastSignInAtMicros == 0)
            #expect(try Self.eventCount(scene.identity, ann.uid, .signedIn) == signInCount)
            for uid in [ann.uid, bob.uid] {
                #expect(try Self.eventCount(scene.identity, uid, .userUpdated, Self.disabledByHook) == 1)
            }
            let refused = failure { _ = try scene.identity.refresh(made.tokens?.refreshToken ?? .empty) }
            #expect(["USER_DISABLED", "TOKEN_EXPIRED"].contains(refused.reason))
            // A disabled user is refused without a call of the hook.
            let count = scene.script.asked.count
            expectRefusal("USER_DISABLED") { _ = try scene.identity.signIn("ann@example.com") }
            #expect(scene.script.asked.count == count)
        }
    }

    /// The sign-in of a disabled user calls no hook. Its transaction waits behind one that enables the user.
    @Test func aUserWhoIsEnabledBetweenTheLookAndTheTransactionIsAskedAbout() async throws {
        try await Self.run { scene in
            let server = scene.identity.server
            let uid = try #require(try scene.identity.signUp("ann@example.com").user?.uid)
            let key = UserKey(.empty, uid)
            func setDisabled(_ isDisabled: Bool, behind gate: @escaping @Sendable () throws -> Void) async throws {
                try await server.project.store.write { transaction in
                    try gate()
                    let old = try #require(try transaction.reading.account(key))
                    var new = old
                    new.user.disabled = isDisabled
                    try transaction.replace(
                        old, by: new, origin: .server, kind: .userUpdated,
                        now: Timestamp(seconds: 1))
                }
            }
            let token = try scene.identity.customToken(for: uid)
            try await setDisabled(true) {}
            try scene.update(["before_sign_in"])
            scene.script.set("before_sign_in", #"{"allow":false,"message":"Ask the desk."}"#)
            let store = server.project.store
            // The writer's thread waits for the sign-in's write, which read the user before this commit.
            let isWriting = Flag()
            let enabled = Task {
                try await setDisabled(false) {
                    isWriting.set()
                    try blockUntil("the sign-in's write waits") { try store.statistics().queuedWrites > 0 }
                }
            }
            try await until("the other write has begun") { isWriting.isSet }
            let signIns = try await atOnce(1) { _ in
                let client = try server.connect()
                return failure {
                    let _: AccountsSignInWithCustomTokenResponse = try client.call(
                        "postern.v1.Accounts/SignInWithCustomToken",
                        AccountsSignInWithCustomTokenRequest(token: token))
                }.reason
            }
            try await enabled.value
            #expect(try signIns.map { try $0.get() } == ["BLOCKED_BY_HOOK"])
            #expect(scene.script.asked.count == 1)
        }
    }

    @Test func aHookIsSetWithinTheRules() async throws {
        try await Self.run { scene in
            expectRefusal("INVALID_HOOK") { try scene.update(["before_create"], timeoutMillis: 99) }
            expectRefusal("INVALID_HOOK") { try scene.update(["before_create"], timeoutMillis: 5_001) }
            try scene.update(["before_create"], timeoutMillis: 100)
            try scene.update(["before_create"], timeoutMillis: 5_000)
            expectRefusal("INVALID_HOOK") { try scene.update(["before_sign_in"], secret: .empty) }
            expectRefusal("INVALID_WEBHOOK") { try scene.update(["before_sign_in"], isPrivate: false) }
            expectRefusal("INVALID_WEBHOOK") { try scene.update(["before_sign_in"], url: "http://hooks.example/") }
            // A stored secret is kept only for its URL.
            try scene.update(["before_create"], secret: .empty)
            expectRefusal("INVALID_HOOK") {
                try scene.update(["before_create"], url: "https://evil.example/", secret: .empty)
            }
            let got: HookConfigsGetResponse = try scene.identity.client.call(
                "postern.v1.HookConfigs/Get", HookConfigsGetRequest())
            #expect(got.config?.beforeCreate?.webhook?.hasSigningSecret == true)
            #expect(got.config?.beforeCreate?.webhook?.signingSecret.isEmpty == true)
        }
    }
}
