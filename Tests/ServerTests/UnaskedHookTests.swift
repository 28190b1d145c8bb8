import Base
import Glibc
import Messages
import Outbound
import Reactor
import Rules
import Synchronization
import TestSupport
import Testing

@testable import Identity
@testable import Service

/// What becomes of a sign-in whose hook is not asked, or not given its time, for a reason on our side. The hook here
/// lets sign-ins go on when it fails itself.
@Suite struct UnaskedHookTests {
    private final class Flag: Sendable {
        private let state = Atomic(false)
        var isSet: Bool { state.load(ordering: .relaxed) }
        func set() { state.store(true, ordering: .relaxed) }
    }

    private struct Scene {
        let client: IdentityClient
        let endpoint: FakeHTTPServer
        /// The endpoint answers nothing until this is set, and then that the sign-in is refused.
        let answers: Flag

        var askedCount: Int { endpoint.requestCount("/hook") }

        func setHook(timeoutMillis: Int32 = 0) throws {
            let webhook = WebhookConfig(
                url: Text("\(endpoint.url)/hook"), signingSecret: Secret([UInt8](repeating: 7, count: 32)))
            let hook = Hook(webhook: webhook, timeoutMillis: timeoutMillis, allowOnFailure: true)
            let _: HookConfigsUpdateResponse = try client.client.call(
                "postern.v1.HookConfigs/Update",
                HookConfigsUpdateRequest(
                    config: HookConfig(beforeSignIn: hook, allowPrivateAddresses: true),
                    updateMask: ProtobufFieldMask(paths: ["before_sign_in", "allow_private_addresses"])))
        }
    }

    private static func run(places: Int = 8, _ body: (Scene) async throws -> Void) async throws {
        let answers = Flag()
        let endpoint = FakeHTTPServer { _ in
            guard answers.isSet else { return .nothing }
            return .response(HTTPResponse(contentType: "application/json", body: Array(#"{"allow":false}"#.utf8)))
        }
        defer { endpoint.close() }
        try await withServer(configure: { $0.limits.outboundRequestsPerTenantMax = places }) { server in
            try await body(Scene(client: IdentityClient(server), endpoint: endpoint, answers: answers))
        }
    }

    @Test func `A sign-in is refused when its tenant has no place to ask the hook`() async throws {
        try await Self.run(places: 1) { scene in
            let (client, pool) = (scene.client, scene.client.server.instance.outboundPool)
            _ = try client.signUp("ann@example.com")
            try scene.setHook()
            try await Self.whileAMailIsSent(client) {
                let refused = failure { _ = try client.signIn("ann@example.com") }
                #expect(refused.reason == "SERVER_OVERLOADED" && refused.code == .resourceExhausted)
                #expect(refused.retryAfter != nil && refused.metadata("hook") == "before_sign_in")
                #expect(scene.askedCount == 0)
            }
            try await until("the mail has ended") { pool.counts.running == 0 }
            scene.answers.set()
            expectRefusal("BLOCKED_BY_HOOK") { _ = try client.signIn("ann@example.com") }
        }
    }

    /// Runs `body` while a mail holds a place of the tenant, because its mail server says nothing.
    private static func whileAMailIsSent(_ client: IdentityClient, _ body: () throws -> Void) async throws {
        let silent = try SilentServer()
        defer { silent.close() }
        try client.deliverBySMTP(port: silent.port)
        _ = try client.sendOob(.passwordReset, email: "ann@example.com")
        try await until("the mail is on its way") { client.server.instance.outboundPool.counts.running == 1 }
        try body()
    }

    // MARK: Asking with a pool of the test's own

    private struct Asking {
        let hooks: BlockingHooks
        let http: HTTPClient
        let pool: WorkerPool

        init(_ scene: Scene) {
            pool = WorkerPool(name: "outbound", workers: 1, queueMax: 16, queueMaxPerTenant: 16)
            http = HTTPClient(pool: OutboundPool(pool))
            hooks = BlockingHooks(scene.client.server.project.hookConfigs, http)
        }

        /// The reason of the refusal; "" when the sign-in may go on.
        func ask(within time: Duration) async -> String {
            let event = BlockingHooks.Event(
                isNewUser: false, account: .new(tenantID: .empty, uid: "ann", now: Timestamp(seconds: 1)),
                signInProvider: "password", deviceName: "", endUserIP: "", requestID: "")
            do {
                _ = try await hooks.ask(event, tenantID: .empty, deadline: .now.advanced(by: time))
                return ""
            } catch {
                return (error as? Failure)?.reason ?? "\(error)"
            }
        }

        func whileTheThreadIsHeld(_ body: (_ release: () -> Void) async throws -> Void) async throws {
            let gate = Semaphore()
            let holding = Task {
                try await http.compute(tenant: "other", deadline: .now.advanced(by: .seconds(60))) { gate.wait() }
            }
            try await until("the thread is held") { pool.counts.running == 1 }
            try await body { gate.signal() }
            try await holding.value
        }
    }

    private static func runAsking(timeoutMillis: Int32, _ body: (Scene, Asking) async throws -> Void) async throws {
        try await run { scene in
            try scene.setHook(timeoutMillis: timeoutMillis)
            let asking = Asking(scene)
            defer { close(asking.pool, scene.endpoint) }
            try await body(scene, asking)
        }
    }

    /// Closing may block a test's thread for a moment.
    private static func close(_ pool: WorkerPool, _ endpoint: FakeHTTPServer) {
        endpoint.close()
        pool.close()
    }

    @Test func `A hook that the call's deadline cuts short has not failed`() async throws {
        try await Self.runAsking(timeoutMillis: 1_000) { _, asking in
            #expect(await asking.ask(within: .milliseconds(300)) == "DEADLINE_EXCEEDED")
            // With its whole time, it has.
            #expect(await asking.ask(within: .seconds(60)) == "")
        }
    }

    @Test func `Waiting for a thread is no failure of the hook`() async throws {
        try await Self.runAsking(timeoutMillis: 1_000) { scene, asking in
            scene.answers.set()
            try await asking.whileTheThreadIsHeld { release in
                let (late, patient) = (
                    Task { await asking.ask(within: .milliseconds(50)) },
                    Task { await asking.ask(within: .seconds(60)) }
                )
                try await until("both wait for the thread") {
                    asking.pool.counts.queued + Int(asking.pool.counts.expired) == 2
                }
                // This is longer than the hook's time.
                try await Task.sleep(for: .milliseconds(1_100))
                release()
                #expect(await late.value == "DEADLINE_EXCEEDED")
                #expect(await patient.value == "BLOCKED_BY_HOOK")
            }
        }
    }

    @Test func `A server that is shutting down does not let sign-ins pass the hook`() async throws {
        try await Self.runAsking(timeoutMillis: 100) { scene, asking in
            Self.close(asking.pool, scene.endpoint)
            #expect(await asking.ask(within: .seconds(60)) == "SERVER_SHUTTING_DOWN")
        }
    }
}
