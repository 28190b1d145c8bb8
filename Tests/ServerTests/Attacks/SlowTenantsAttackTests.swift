import Base
import Glibc
import Messages
import Reactor
import Synchronization
import TestSupport
import Testing

@testable import Identity
@testable import Service

/// Tenants whose hooks and mail servers all hang, against a tenant whose servers answer at once.
@Suite struct SlowTenantsAttackTests {
    private static func tenantIDs(_ count: Int) -> [Text] { (0..<count).map { Text("slow-\($0)") } }

    private static func makeTenant(_ admin: RawClient, _ tenantID: Text) throws {
        let _: TenantsCreateResponse = try admin.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: tenantID, tenant: Messages.Tenant(enableAnonymousUser: true, enableEmailLinkSignin: true),
                updateMask: ProtobufFieldMask(paths: ["enable_email_link_signin", "enable_anonymous_user"])))
    }

    private static func setHook(_ admin: RawClient, _ tenantID: Text, url: String) throws {
        let webhook = WebhookConfig(url: Text(url), signingSecret: Secret([UInt8](repeating: 7, count: 32)))
        let _: HookConfigsUpdateResponse = try admin.call(
            "postern.v1.HookConfigs/Update",
            HookConfigsUpdateRequest(
                tenantID: tenantID,
                config: HookConfig(beforeCreate: Hook(webhook: webhook), allowPrivateAddresses: true),
                updateMask: ProtobufFieldMask(paths: ["before_create", "allow_private_addresses"])))
    }

    /// A sign-up without email and password: it costs no hash. Throws the refusal.
    private static func signUp(_ client: RawClient, _ tenantID: Text) throws {
        let _: AccountsSignUpResponse = try client.call(
            "postern.v1.Accounts/SignUp", AccountsSignUpRequest(tenantID: tenantID))
    }

    /// Eight sign-ups of each tenant at once, none of which is answered; then `body`.
    private static func whileSignUpsHang(
        _ server: TestServer, _ tenantIDs: [Text], _ body: () throws -> Void
    ) throws {
        let clients = try tenantIDs.map { tenantID in
            let client = try server.connect()
            for _ in 0..<8 {
                let request = AccountsSignUpRequest(tenantID: tenantID)
                try client.send(client.request("postern.v1.Accounts/SignUp", request, stream: client.nextStream()))
            }
            return client
        }
        defer { for client in clients { client.close() } }
        let pool = server.instance.outboundPool
        try blockUntil("the sign-ups have their hooks asked") {
            pool.counts.running + pool.counts.queued >= min(16, 8 * tenantIDs.count)
        }
        usleep(200_000)
        try body()
    }

    private static func run(slow count: Int, _ body: (TestServer, RawClient) throws -> Void) async throws {
        let endpoint = FakeHTTPServer { request in
            guard request.path == "/quick" else { return .silence }
            return .response(HTTPResponse(contentType: "application/json", body: Array(#"{"allow":true}"#.utf8)))
        }
        defer { endpoint.close() }
        try await withServer { server in
            let admin = try server.connect()
            for tenantID in tenantIDs(count) {
                try makeTenant(admin, tenantID)
                try setHook(admin, tenantID, url: "\(endpoint.url)/slow")
            }
            try makeTenant(admin, "quick")
            try setHook(admin, "quick", url: "\(endpoint.url)/quick")
            try body(server, admin)
        }
    }

    @Test(arguments: [2, 6]) func `Tenants whose hooks hang do not hold up another tenant's sign-ups`(
        count: Int
    ) async throws {
        try await Self.run(slow: count) { server, admin in
            try Self.whileSignUpsHang(server, Self.tenantIDs(count)) {
                let before = server.instance.outboundPool.counts.done
                for _ in 0..<3 { try Self.signUp(admin, "quick") }
                // Only the hooks of these sign-ups have ended; the others still hang.
                #expect(server.instance.outboundPool.counts.done - before <= 3)
            }
        }
    }

    @Test func `A tenant that takes more than its share is refused soon, and not at its deadline`() async throws {
        try await Self.run(slow: 1) { server, admin in
            try Self.whileSignUpsHang(server, ["slow-0"]) {
                let before = server.instance.outboundPool.counts.done
                expectRefusal("SERVER_OVERLOADED") { try Self.signUp(admin, "slow-0") }
                // The hooks that hang began earlier, and have not reached their deadlines.
                #expect(server.instance.outboundPool.counts.done == before)
            }
        }
    }

    @Test func `Tenants whose mail servers hang do not hold up another tenant's mail`() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 200, body: [])) }
        defer { receiver.close() }
        let silent = try SilentServer()
        try await withServer { server in
            // Closing the server at the end breaks off the waiting deliveries at once.
            defer { silent.close() }
            let client = try IdentityClient(server)
            for tenantID in Self.tenantIDs(6) {
                try Self.makeTenant(client.client, tenantID)
                try Self.deliver(client, tenantID, through: silent.port)
                for number in 0..<4 { try Self.sendLink(client, tenantID, to: Text("user\(number)@example.com")) }
            }
            let pool = server.instance.outboundPool
            try await until("deliveries hang") { pool.counts.running >= 8 }
            try Self.makeTenant(client.client, "quick")
            try client.deliverByWebhook(tenantID: "quick", url: "\(receiver.url)/mail")
            for number in 0..<3 { try Self.sendLink(client, "quick", to: Text("user\(number)@example.com")) }
            try await until("the tenant's mail is sent past servers that hang") { receiver.requestCount("/mail") == 3 }
        }
    }

    private static func deliver(_ client: IdentityClient, _ tenantID: Text, through port: UInt16) throws {
        try client.configureMail(
            tenantID: tenantID, ["delivery", "smtp", "sender_address", "allow_private_addresses"]
        ) {
            $0.delivery = .smtp
            $0.smtp = SmtpConfig(host: "127.0.0.1", port: Int32(port), security: .none)
            $0.senderAddress = "no-reply@example.com"
            $0.allowPrivateAddresses = true
        }
    }

    /// There are more tenants than messages that may be on their way at once. Each could have a place, and a thread.
    @Test func `Seventy tenants whose mail servers are known to hang leave places to another tenant`() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 200, body: [])) }
        defer { receiver.close() }
        let hanging = ConnectionThreads(name: "hanging-mail")
        hanging.start { socket in
            var byte: UInt8 = 0
            while recv(socket, &byte, 1, 0) > 0 {}
        }
        let placeCount = DeliveryPlaces.countMax
        try await withServer(configure: { $0.limits.outboundWorkers = 3 * placeCount }) { server in
            defer { hanging.close() }
            let client = try IdentityClient(server)
            for tenantID in Self.tenantIDs(70) {
                try Self.makeTenant(client.client, tenantID)
                try Self.deliver(client, tenantID, through: hanging.port)
                try Self.sendLink(client, tenantID, to: "user@example.com")
            }
            await server.project.mailer.wake()
            try await until("every place is taken") { hanging.openCount == placeCount }
            // These deliveries end after they count as slow.
            try await Task.sleep(for: DeliveryPlaces.slow + .milliseconds(50))
            hanging.cut()
            // The tenants without a place were never slow, and get places now.
            try await until("the deliveries have ended") {
                await server.project.mailer.wake()
                return hanging.acceptedCount == 70 && hanging.openCount == 6
            }
            server.clock.advance(by: .minutes(1))
            try await until("the retries hang") {
                await server.project.mailer.wake()
                return hanging.openCount == 6 + DeliveryPlaces.heldUpMax
            }
            try Self.makeTenant(client.client, "quick")
            try client.deliverByWebhook(tenantID: "quick", url: "\(receiver.url)/mail")
            try Self.sendLink(client, "quick", to: "user@example.com")
            await server.project.mailer.wake()
            try await until("the tenant's mail is sent") { receiver.requestCount("/mail") == 1 }
            #expect(hanging.openCount == 6 + DeliveryPlaces.heldUpMax)
        }
    }

    private static func sendLink(_ client: IdentityClient, _ tenantID: Text, to email: Text) throws {
        client.server.clock.advance(by: .milliseconds(1))
        let _: AccountsSendOobCodeResponse = try client.client.call(
            "postern.v1.Accounts/SendOobCode",
            AccountsSendOobCodeRequest(tenantID: tenantID, requestType: .emailSignin, email: email))
    }
}
