import Base
import Messages
import PosternClient
import Rules
import Synchronization
import TestSupport
import Testing

@testable import Identity
@testable import PosternAuth

let password = "correct horse"

/// A server and applications that use it, each with clocks and a storage of its own.
struct Application {
    let server: TestServer
    let admin: Channel

    /// Runs `body` against a fresh server where anonymous users and sign-in by link are on.
    static func run(_ body: (Application) async throws -> Void) async throws {
        try await withServer { server in
            let admin = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
            let application = Application(server: server, admin: admin)
            try await application.setTenant(["enable_anonymous_user", "enable_email_link_signin"]) {
                $0.enableAnonymousUser = true
                $0.enableEmailLinkSignin = true
            }
            try await body(application)
            await admin.shutdown()
        }
    }

    /// An application on another device. `clock`: its clocks, right if nil; `through`: the address of another way to
    /// the server.
    func auth(
        storage: any AuthStorage = InMemoryStorage(), clock: TestClock? = nil, through address: String? = nil,
        tenantID: String = "", deviceName: String = "", storageErrors: Recording<AuthStorageError>? = nil,
        timeout: Duration = .seconds(10)
    ) throws -> Auth {
        var configuration = Auth.Configuration(
            address: address ?? "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
        configuration.storage = storage
        configuration.clock = (clock ?? self.clock()).clock
        configuration.tenantID = tenantID
        configuration.deviceName = deviceName
        configuration.timeout = timeout
        if let storageErrors { configuration.storageErrorHandler = { storageErrors.append($0) } }
        return try Auth(configuration: configuration)
    }

    /// An application that has a user, is connected through `proxy`, and gives its calls no more than `timeout`. The
    /// sign-up goes another way, and takes as long as the machine needs.
    func signedIn(
        _ email: String = "ada@example.com", storage: InMemoryStorage = InMemoryStorage(), clock: TestClock? = nil,
        through proxy: CuttingProxy, timeout: Duration
    ) async throws -> (auth: Auth, user: PosternAuth.User) {
        let made = try await self.auth().createUser(withEmail: email, password: password).user
        storage.save(made.saved.encoded())
        let auth = try self.auth(storage: storage, clock: clock, through: proxy.address, timeout: timeout)
        let user = try #require(auth.currentUser)
        try await until("the application is connected") { (try? await user.reload()) != nil }
        return (auth, user)
    }

    func clock(wrongBy error: Duration = .zero) -> TestClock {
        TestClock(wallStartingAt: server.clock.clock.now() + error)
    }

    /// The number of users that the server watches, without its own watch on the credentials of its callers.
    var streamCount: Int { server.project.changes.watchCount.load(ordering: .acquiring) - 1 }

    func setTenant(_ paths: [Text], _ change: (inout Messages.Tenant) -> Void) async throws {
        var tenant = Messages.Tenant()
        change(&tenant)
        _ = try await TenantsClient(channel: admin).update(
            TenantsUpdateRequest(tenant: tenant, updateMask: ProtobufFieldMask(paths: paths)))
    }

    /// The newest mail's link.
    func mailedLink() async throws -> String {
        let outbox = OutboxClient(channel: admin)
        let listed = try await outbox.list(OutboxListRequest())
        let newest = try #require(listed.messages.first)
        let read = try await outbox.get(OutboxGetRequest(messageID: newest.messageID))
        return try #require(read.contents).link.string
    }

    /// A credential that is as good as what a provider proves now, without a provider that runs.
    func credential(_ identity: FederatedIdentity) -> AuthCredential {
        let token = server.pendingToken(for: identity)
        return AuthCredential(provider: identity.providerID.string, kind: .pending(Secret(token.bytes)))
    }
}

extension FederatedIdentity {
    static func google(_ rawID: Text = "g-1", email: Text = "ada@gmail.com") -> FederatedIdentity {
        FederatedIdentity(
            providerID: "google.com", rawID: rawID, email: email, isEmailVerifiedByProvider: true, isEmailTrusted: true,
            displayName: "Ada at Google", photoURL: "https://g.example/ada")
    }

    static func facebook(_ rawID: Text = "f-1", email: Text = "ada@gmail.com") -> FederatedIdentity {
        FederatedIdentity(providerID: "facebook.com", rawID: rawID, email: email, displayName: "Ada on Facebook")
    }
}

/// The values that callbacks received.
final class Recording<Element: Sendable>: Sendable {
    private let storage = Mutex<[Element]>([])

    func append(_ element: Element) { storage.withLock { $0.append(element) } }
    var elements: [Element] { storage.withLock { $0 } }
}

/// The error `body` throws; fails the test when it throws none.
func error(
    of body: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> AuthError {
    do {
        try await body()
    } catch let error as AuthError {
        return error
    }
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    throw NothingThrown()
}

struct NothingThrown: Error {}
