import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

@testable import Service

/// The calls that the server itself has seen: its counters by method, and the idempotency keys that it keeps.
final class MethodRecorder {
    private let server: TestServer
    private let methods: [String: RegisteredMethod]
    private(set) var called: Set<String> = []
    private static let keepsNoKey = Set(PublishedMethod.all.filter { !$0.noIdempotencyKey.isEmpty }.map(\.fullName))

    init(_ server: TestServer) {
        self.server = server
        self.methods = Dictionary(
            uniqueKeysWithValues: server.instance.router.registry.all.map { ($0.descriptor.fullName, $0) })
    }

    /// The methods that require an administrator.
    var ofAdministrators: Set<String> {
        Set(methods.values.map(\.descriptor).filter { $0.role.rawValue >= Role.tenantAdmin.rawValue }.map(\.fullName))
    }

    /// Expects that `body` calls this method, with a key exactly if the method could not be repeated without one.
    func expect<Result>(_ name: String, _ body: () async throws -> Result) async throws -> Result {
        let fullName = "postern.v1.\(name)"
        let method = try #require(methods[fullName], "there is no \(fullName)")
        let (callsBefore, keysBefore) = (Self.callCount(method), try keyCount())
        let result = try await body()
        // The server counts a call after its answer.
        try await until("\(name) was called") { Self.callCount(method) > callsBefore }
        let rule = method.descriptor
        let needsKey = rule.mutation && !rule.idempotent && !rule.requestStreaming
        #expect(
            try keyCount() == keysBefore + (needsKey && !Self.keepsNoKey.contains(fullName) ? 1 : 0),
            "the key of \(name)")
        called.insert(fullName)
        return result
    }

    /// Waits until the server has answered `count` calls of the method.
    func waitForCalls(_ name: String, _ count: Int) async throws {
        let method = try #require(methods["postern.v1.\(name)"])
        try await until("\(name) was called \(count) times") { Self.callCount(method) >= count }
    }

    private static func callCount(_ method: RegisteredMethod) -> UInt64 {
        StatusCode.allCases.reduce(0) { $0 + method.metrics.count($1) }
    }

    private func keyCount() throws -> Int {
        var count = 0
        try server.project.store.read { transaction in
            try transaction.scan(Tables.idempotency) { _ in
                count += 1
                return true
            }
        }
        return count
    }
}
