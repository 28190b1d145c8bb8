import Base
import Crypto
import Identity
import Reactor
import Service
import TestSupport
import Testing

/// docs/decisions/0042: the memory of password hashes is kept, wiped and given back.
@Suite(.serialized) struct PasswordMemoryTests {
    /// What a line of /metrics says.
    private func metric(_ name: String, _ server: TestServer) throws -> Int64 {
        let route = try #require(server.instance.sidePortRoutes["/metrics"])
        let lines = String(decoding: route().body, as: UTF8.self).split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix("\(name) ") })
        let number = try #require(Double(line.dropFirst(name.count + 1)))
        return Int64(number)
    }

    /// Checks that libsodium uses the memory that it is offered, as this program is linked.
    @Test func everyHashIsComputedInKeptMemory() async throws {
        try await withServer(configure: { $0.project.passwordProfile = .standard }) { server in
            let client = try IdentityClient(server)
            /// A hash whose worker gets no processor is computed by another one as well, so there may be more.
            func hashes(_ body: () throws -> Void) throws -> Int64 {
                let before = try metric("postern_password_arena_hashes_total", server)
                try body()
                return try metric("postern_password_arena_hashes_total", server) - before
            }
            let ofSignUp = try hashes { _ = try client.signUp("ada@example.com") }
            let ofSignIn = try hashes { _ = try client.signIn("ada@example.com") }
            // An address without an account costs a hash too.
            let ofNobody = try hashes { _ = failure { _ = try client.signIn("nobody@example.com") } }
            #expect(ofSignUp >= 1 && ofSignIn >= 1 && ofNobody >= 1)
            #expect(try metric("postern_password_arena_bytes", server) >= 19_456 << 10)
        }
    }

    @Test func aPoolThatRestsHoldsNoMemory() async throws {
        let before = PasswordArena.byteCount
        try await withServer(configure: {
            $0.project.passwordProfile = .standard
            $0.limits.passwordArenaKept = .zero
        }) { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            try await until("the memory is given back") { PasswordArena.byteCount == before }
            _ = try client.signIn("ada@example.com")
        }
        #expect(PasswordArena.byteCount == before)
    }
}
