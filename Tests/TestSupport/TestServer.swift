public import Base
public import Crypto
public import Identity
import Reactor
public import Service
import Store
public import Transport

/// A whole server in this process: real TCP on loopback, real LMDB in a fresh directory, a clock that stands still.
///
/// Password hashes are cheap unless the test says otherwise. Everything is gone when `withServer` returns.
public final class TestServer: Sendable {
    public let instance: Instance
    public let address: SocketAddress
    public let adminKey: Secret
    public let clock: ManualClock
    public let masterKey: MasterKey
    public let directory: String

    public var project: Project { instance.project }
    public var port: UInt16 { address.port }

    fileprivate init(
        instance: Instance, address: SocketAddress, adminKey: Secret, clock: ManualClock, masterKey: MasterKey,
        directory: String
    ) {
        self.instance = instance
        self.address = address
        self.adminKey = adminKey
        self.clock = clock
        self.masterKey = masterKey
        self.directory = directory
    }

    /// Listens on a chosen port as well; the caller closes the listener.
    public func listen(port: UInt16) throws -> Listener {
        guard let wanted = SocketAddress(host: "127.0.0.1", port: port) else { preconditionFailure("no loopback") }
        let listener = try instance.server.listen(wanted)
        listener.start()
        return listener
    }

    /// A raw connection with the admin key, or without a credential.
    public func connect(authenticated: Bool = true) throws -> RawClient {
        let client = try RawClient(callingOn: port)
        if authenticated { client.apiKey = adminKey }
        return client
    }
}

/// Runs `body` against a fresh server.
public func withServer<Result: Sendable>(
    configure: @Sendable (inout Instance.Configuration) -> Void = { _ in },
    log: Log = .silent,
    _ body: (TestServer) async throws -> Result
) async throws -> Result {
    try await withTemporaryDirectory { directory in
        let clock = ManualClock()
        let masterKey = MasterKey.generate(random: .system)
        return try await withServer(
            directory: directory, clock: clock, masterKey: masterKey, configure: configure, log: log, body)
    }
}

/// Runs `body` against a server over an existing directory, as after a restart. `adminKey` is the key that the first
/// start made.
public func withServer<Result: Sendable>(
    directory: String, clock: ManualClock, masterKey: MasterKey, adminKey: Secret? = nil,
    configure: @Sendable (inout Instance.Configuration) -> Void = { _ in }, log: Log = .silent,
    _ body: (TestServer) async throws -> Result
) async throws -> Result {
    var project = Project.Configuration(projectID: "test", issuer: "https://issuer.test/test")
    project.signingAlgorithm = .es256
    project.passwordProfile = .cheap
    var configuration = Instance.Configuration(dataDirectory: directory, project: project, random: .system)
    configuration.clocks = clock.machine
    configuration.store.mapByteCount = 256 << 20
    configuration.limits.drainTimeout = .seconds(5)
    configure(&configuration)
    configuration.store.runWritesTwiceIfAsked()
    try configuration.useJournalIfAsked(masterKey: masterKey)
    let instance = try Instance(configuration, masterKey: masterKey, log: log) { _ in }
    var result: Swift.Result<Result, any Error>
    do {
        let firstKey = try await instance.start()
        guard let key = adminKey ?? firstKey else { preconditionFailure("a restart needs the admin key of before") }
        guard let wanted = SocketAddress(host: "127.0.0.1", port: 0) else { preconditionFailure("no loopback") }
        let listener = try instance.server.listen(wanted)
        listener.start()
        let server = TestServer(
            instance: instance, address: listener.address, adminKey: key, clock: clock, masterKey: masterKey,
            directory: directory)
        do { result = .success(try await body(server)) } catch { result = .failure(error) }
        if case .success = result, let write = LongWrite(in: instance.project.store) { result = .failure(write) }
        listener.close()
    } catch {
        await closeOnThread(instance)
        throw error
    }
    await closeOnThread(instance)
    let value = try result.get()
    // All streams have ended.
    if instance.project.tenants.quotas.streamsChargedLate.value > 0 { throw LateCharge() }
    return value
}

/// `close` blocks: it gets a thread of its own.
private func closeOnThread(_ instance: Instance) async {
    await instance.server.closeAll()
    let done = Promise<Void>()
    let thread = OSThread(name: "close") {
        instance.close()
        done.succeed(())
    }
    try? await done.value()
    thread.join()
}

/// A stream wrote something outside of `StreamCall.charging`, so that its caller was charged only at the stream's end.
public struct LateCharge: Error {}

/// A single write changed so many records that everybody else waited for it. Long changes are made in slices:
/// `Store.write(each:)`.
public struct LongWrite: Error {
    public let changeCount: Int64
    private static let changesMax: Int64 = 1_200

    fileprivate init?(in store: Store) {
        guard let statistics = try? store.statistics(), statistics.largestWrite > Self.changesMax else { return nil }
        changeCount = statistics.largestWrite
    }
}
