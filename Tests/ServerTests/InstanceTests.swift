import Base
import Crypto
import Identity
import Service
import Store
import TestSupport
import Testing

/// What a start does when it fails.
@Suite struct InstanceTests {
    /// The threads that were started before the store was opened end with the attempt.
    @Test func aStoreThatIsInUseIsAnErrorAndNothingElse() async throws {
        try await withServer { server in
            var project = Project.Configuration(projectID: "test", issuer: "https://issuer.test/test")
            project.passwordProfile = .cheap
            let configuration = Instance.Configuration(
                dataDirectory: server.directory, project: project, random: .system)
            for _ in 0..<3 {
                #expect(throws: StoreError.self) {
                    _ = try Instance(configuration, masterKey: server.masterKey, log: .silent) { _ in }
                }
            }
            _ = try server.connect()
        }
    }
}
