import Base
import Identity
import Messages
import Service
import TestSupport
import Testing

/// The hash specs that streams of imports and exports hold in memory have a bound.
@Suite struct HashSpecMemoryTests {
    private static func specs(_ count: Int) -> [NamedHashSpec] {
        (0..<count).map {
            NamedHashSpec(name: Text("s\($0)"), spec: PasswordHashSpec(algorithm: .bcrypt(BcryptSpec())))
        }
    }

    @Test func `One tenant's imports hold half of all specs, and another tenant finds a place`() async throws {
        try await withServer(configure: { $0.limits.administration.importHashSpecsAtOnceMax = 8 }) { server in
            for tenantID in ["first", "other"] as [Text] { try server.makeTenant(tenantID) }
            func begin(_ tenantID: Text, holding count: Int) throws -> ImportTests.Stream {
                try ImportTests.Stream(
                    server.connect(), UsersImportRequest(tenantID: tenantID, hashSpecs: Self.specs(count)))
            }
            let first = try begin("first", holding: 4)
            #expect(try first.answer().checkpoint == 0)
            expectRefusal("SERVER_OVERLOADED") { _ = try begin("first", holding: 1).answer() }
            let other = try begin("other", holding: 1)
            #expect(try other.answer().checkpoint == 0)
            let places = server.project.imports.specPlaces
            #expect(places.freeCount == 3)
            try first.end()
            // A stream is answered shortly before its import is gone.
            try await until { places.freeCount == 7 }
            let again = try begin("first", holding: 3)
            #expect(try again.answer().checkpoint == 0)
            expectRefusal("SERVER_OVERLOADED") { _ = try begin("first", holding: 5).answer() }
            // The places that the refused import had taken are free again.
            try await until { places.freeCount == 4 }
        }
    }

    private static func spec(_ name: Text, rounds: Int32) -> NamedHashSpec {
        NamedHashSpec(
            name: name, spec: PasswordHashSpec(algorithm: .digest(DigestSpec(function: .sha256, rounds: rounds))))
    }

    private static func user(_ number: Int, _ spec: Text) -> ImportUser {
        ImportUser(
            uid: Text("u\(number)"), email: Text("u\(number)@example.com"),
            passwordHash: Secret([UInt8](repeating: 7, count: 32)), salt: [UInt8](repeating: 1, count: 8),
            hashSpec: spec)
    }

    @Test func `An export of more specs than an import takes tells earlier ones again`() async throws {
        try await withServer(configure: { $0.limits.administration.importHashSpecsMax = 2 }) { server in
            let first = try ExportTests.importAll(
                server, [Self.user(0, "a"), Self.user(1, "b")], [Self.spec("a", rounds: 1), Self.spec("b", rounds: 2)])
            let second = try ExportTests.importAll(
                server, [Self.user(2, "c"), Self.user(3, "a")], [Self.spec("a", rounds: 1), Self.spec("c", rounds: 3)])
            #expect(first.createdCount == 2 && second.createdCount == 2)
            let exported = try ExportTests.export(
                server, UsersExportRequest(includePasswordHashes: true), key: ExportTests.exporter(server))
            let told = exported.flatMap(\.hashSpecs).map(\.name)
            #expect(told.count == 4 && Set(told).count == 3 && told.first == told.last)
            #expect(told == exported.flatMap(\.users).map(\.hashSpec))
        }
    }
}
