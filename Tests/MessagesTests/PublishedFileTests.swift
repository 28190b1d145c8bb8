import Base
import Messages
import Testing

@Suite struct PublishedFileTests {
    @Test func `the API, health and reflection are published, the stored records are not`() {
        let services = PublishedFile.all.flatMap(\.services)
        for service in ["Accounts", "Users", "Tokens", "Tenants", "Project"] {
            #expect(services.contains(Text("postern.v1.\(service)")))
        }
        #expect(services.contains("grpc.health.v1.Health"))
        #expect(services.contains("grpc.reflection.v1.ServerReflection"))
        #expect(!PublishedFile.all.contains { $0.name == "postern/store/v1/store.proto" })
        #expect(!PublishedFile.all.contains { $0.name == "postern/wire/v1/wire.proto" })
    }

    @Test func `every symbol has one file`() {
        let symbols = PublishedFile.all.flatMap(\.symbols)
        #expect(Set(symbols).count == symbols.count)
        for symbol in [
            "postern.v1.User", "postern.v1.Users", "postern.v1.Users.Get", "postern.v1.Role", "postern.v1.rule",
            "grpc.health.v1.HealthCheckResponse.ServingStatus", "google.rpc.BadRequest.FieldViolation",
        ] {
            #expect(symbols.contains(Text(symbol)), "\(symbol)")
        }
    }

    @Test func `a file's imports are published before it`() {
        var seen: Set<Text> = []
        for file in PublishedFile.all {
            for dependency in file.dependencies { #expect(seen.contains(dependency), "\(file.name)") }
            seen.insert(file.name)
        }
    }
}
