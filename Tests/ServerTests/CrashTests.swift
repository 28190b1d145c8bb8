import Base
import Glibc
import Messages
import Synchronization
import TestSupport
import Testing
import Wire

/// posternd as a process of its own, killed in the middle of its work, twenty times.
@Suite struct CrashTests {
    @Test func nothingAcknowledgedIsLostAndNothingIsHalfThere() async throws {
        try withTemporaryDirectory { directory in
            let port = try Self.freePort()
            var server = try Self.start(directory, port)
            let key = try Self.adminKey(directory)
            try Self.prepare(port, key)
            let acknowledged = Mutex<[Text: Text]>([:])
            let refusals = Mutex<Int64>(0)
            for round in 0..<20 {
                let threads = (0..<4).map { worker in
                    OSThread(name: "sign-ups") {
                        Self.signUp(until: acknowledged, refusals, port, key, prefix: "r\(round)w\(worker)")
                    }
                }
                usleep(UInt32.random(in: 20_000...150_000))
                server.kill()
                for thread in threads { thread.join() }
                server = try Self.start(directory, port)
            }
            let client = try Self.client(port, key)
            let accounts = acknowledged.withLock { $0 }
            #expect(!accounts.isEmpty)
            for (email, uid) in accounts {
                let found = try client.call(
                    "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(tenantID: "fast", email: email),
                    returning: UsersGetByEmailResponse.self)
                #expect(found.user?.uid == uid)
            }
            try Self.expectWholeAccounts(client)
            try Self.expectRefusals(client, atLeast: refusals.withLock { $0 })
            server.kill()
        }
    }

    /// posternd over a directory; returns when it takes connections.
    static func start(
        _ directory: String, _ port: UInt16, openFilesMax: Int? = nil, httpPort: UInt16? = nil,
        settings: [String] = []
    ) throws -> ChildProcess {
        let httpAddress = httpPort.map { "127.0.0.1:\($0)" } ?? "off"
        let process = try ChildProcess(
            ChildProcess.built("posternd"),
            ["--data-directory", directory, "--listen-address", "127.0.0.1:\(port)", "--http-address", httpAddress]
                + settings,
            output: "\(directory)/log", openFilesMax: openFilesMax)
        func log() -> String { String(decoding: readFile("\(directory)/log") ?? [], as: UTF8.self) }
        try blockUntilServing(port: port, log())
        return process
    }

    static func adminKey(_ directory: String) throws -> Secret {
        var bytes: [UInt8] = []
        try blockUntil("posternd makes an admin key") {
            bytes = readFile("\(directory)/admin-key") ?? []
            return bytes.count > 1
        }
        return Secret(Array(bytes.dropLast()))
    }

    private static func client(_ port: UInt16, _ key: Secret) throws -> RawClient {
        let client = try RawClient(port: port)
        client.apiKey = key
        return client
    }

    /// Makes a tenant with cheap hashes to sign up in, and one where nobody may sign up.
    private static func prepare(_ port: UInt16, _ key: Secret) throws {
        let client = try client(port, key)
        var fast = TenantsCreateRequest(tenantID: "fast", tenant: Messages.Tenant(synthetic: true))
        fast.updateMask = ProtobufFieldMask(paths: ["synthetic"])
        _ = try client.call("postern.v1.Tenants/Create", fast, returning: TenantsCreateResponse.self)
        var shut = TenantsCreateRequest(tenantID: "shut", tenant: Messages.Tenant())
        shut.tenant?.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
        shut.updateMask = ProtobufFieldMask(paths: ["client.permissions.disabled_user_signup"])
        _ = try client.call("postern.v1.Tenants/Create", shut, returning: TenantsCreateResponse.self)
    }

    /// Signs users up until the server dies; notes each answer that came.
    private static func signUp(
        until acknowledged: borrowing Mutex<[Text: Text]>, _ refusals: borrowing Mutex<Int64>, _ port: UInt16,
        _ key: Secret, prefix: String
    ) {
        guard let client = try? client(port, key) else { return }
        for index in 0..<100_000 {
            let email = Text("\(prefix)n\(index)@example.com")
            var request = AccountsSignUpRequest(tenantID: "fast", email: email, password: Secret("secret1"))
            do {
                let made = try client.call(
                    "postern.v1.Accounts/SignUp", request, returning: AccountsSignUpResponse.self)
                acknowledged.withLock { $0[email] = made.user?.uid ?? .empty }
                guard index % 10 == 0 else { continue }
                request.tenantID = "shut"
                _ = try client.call("postern.v1.Accounts/SignUp", request, returning: AccountsSignUpResponse.self)
            } catch let failure as Failure {
                if failure.reason == "ADMIN_RESTRICTED_OPERATION" { refusals.withLock { $0 += 1 } }
            } catch {
                return
            }
        }
    }

    /// Every stored user is found by its own email: record and index came together or not at all.
    private static func expectWholeAccounts(_ client: RawClient) throws {
        var request = UsersListRequest(tenantID: "fast", pageSize: 1_000)
        repeat {
            let page = try client.call("postern.v1.Users/List", request, returning: UsersListResponse.self)
            for user in page.users {
                let found = try client.call(
                    "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(tenantID: "fast", email: user.email),
                    returning: UsersGetByEmailResponse.self)
                #expect(found.user?.uid == user.uid)
            }
            request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty
    }

    private static func expectRefusals(_ client: RawClient, atLeast count: Int64) throws {
        let listed = try client.call(
            "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest(tenantID: "shut", pageSize: 1),
            returning: TenantsListDenialsResponse.self)
        let recorded = listed.denials.first.map { $0.sequence } ?? 0
        let counted = listed.counts.reduce(0) { $0 + $1.count }
        // Above 200 a second denials are only counted, and the counts of the last second may be lost.
        #expect(recorded > 0 || count == 0)
        #expect(counted >= recorded)
        let failure = #expect(throws: Failure.self) {
            try client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(tenantID: "shut", email: "last@example.com", password: Secret("secret1")),
                returning: AccountsSignUpResponse.self)
        }
        #expect(failure?.reason == "ADMIN_RESTRICTED_OPERATION")
    }

    static func freePort() throws -> UInt16 { try TestSupport.freePort() }
}
