import Base
import Glibc
import Messages
import Service
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

/// Peers that ask for more than they take, vanish, or use up what the process has: memory, slots, descriptors.
@Suite struct WireBackpressureTests {
    private static let get = "postern.v1.Users/Get"

    /// A server with one user whose answer is about 2 KB.
    private static func makeUser(_ server: TestServer) throws {
        let photo = Text("https://x/" + String(repeating: "x", count: 2_000))
        _ = try server.connect().call(
            "postern.v1.Users/Create", UsersCreateRequest(uid: "u1", photoURL: photo),
            returning: UsersCreateResponse.self)
    }

    private static func expectCanary(_ server: TestServer) throws {
        let answer = try server.connect().call(
            Self.get, UsersGetRequest(uid: "u1"), returning: UsersGetResponse.self)
        #expect(answer.user?.uid == "u1")
    }

    @Test func aBurstWhoseAnswersExceedTheOutputLimitIsAnsweredWhole() async throws {
        try await withServer(configure: { $0.limits.unreadOutputMax = 16 * 1024 }) { server in
            try Self.makeUser(server)
            let client = try server.connect()
            // Authenticates first: after that, more streams may be open.
            _ = try client.call(Self.get, UsersGetRequest(uid: "u1"), returning: UsersGetResponse.self)
            for _ in 0..<20 {
                var burst: [UInt8] = []
                for _ in 0..<200 {
                    burst += client.request(Self.get, UsersGetRequest(uid: "u1"), stream: client.nextStream())
                }
                try client.send(burst)
                for _ in 0..<200 {
                    let answer = try RawClient.response(try client.readFrame(), returning: UsersGetResponse.self)
                    #expect(answer.user?.uid == "u1")
                }
            }
        }
    }

    // W13
    @Test func aClientThatDoesNotReadIsClosed() async throws {
        try await withServer(configure: {
            $0.limits.unreadOutputMax = 64 * 1024
            $0.limits.writeTimeout = .milliseconds(300)
        }) { server in
            try Self.makeUser(server)
            let client = try RawClient(port: server.port, receiveByteCount: 4_096)
            client.apiKey = server.adminKey
            try Self.askUntilClosed(client)
            try Self.expectCanary(server)
        }
    }

    // W14: what the client takes now and then is no progress while the kernel finds it too little to report.
    @Test func aClientThatReadsByteByByteIsClosed() async throws {
        try await withServer(configure: {
            $0.limits.unreadOutputMax = 64 * 1024
            $0.limits.writeTimeout = .milliseconds(300)
        }) { server in
            try Self.makeUser(server)
            let client = try RawClient(port: server.port, receiveByteCount: 4_096)
            client.apiKey = server.adminKey
            // Unsafe: one thread only sends and the other only receives; they share the descriptor, which stays open.
            nonisolated(unsafe) let receiving = client
            let isOver = Mutex(false)
            let reader = OSThread(name: "slow reader") {
                while !isOver.withLock({ $0 }), (try? receiving.receive(1)) != nil { usleep(20_000) }
            }
            try Self.askUntilClosed(client)
            isOver.withLock { $0 = true }
            reader.join()
            try Self.expectCanary(server)
        }
    }

    /// Sends requests until the server has closed the connection.
    private static func askUntilClosed(_ client: RawClient) throws {
        let get = client.request(Self.get, UsersGetRequest(uid: "u1"), stream: 0)
        let thrown = #expect(throws: RawClient.RawError.self) {
            for _ in 0..<1_000_000 {
                var request = get
                withUnsafeBytes(of: client.nextStream().bigEndian) { request.replaceSubrange(4..<8, with: $0) }
                try client.send(request)
            }
        }
        #expect(thrown != .timedOut)
    }

    // W07
    @Test func aPeerThatVanishedGivesItsSlotBack() async throws {
        try await withServer(configure: {
            $0.limits.connectionsMax = 1
            $0.limits.idleTimeout = .milliseconds(500)
        }) { server in
            let silent = try server.connect()
            _ = try silent.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            // A refusal leaves no call behind when the server sets the connection's timer. After an answer that comes
            // later, the timer waits for the memory's trimming, some seconds.
            _ = try? silent.call("postern.v1.Users/Nothing", UsersListRequest(), returning: UsersListResponse.self)
            try await until("the next client is served") {
                guard let next = try? server.connect() else { return false }
                return (try? next.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self))
                    != nil
            }
        }
    }

    // W17: accept(2) returns a dead connection, or fails for one; either way the next connection is served.
    @Test func connectionsThatAreResetAtOnceDoNotDisturbTheListener() async throws {
        try await withServer { server in
            try Self.makeUser(server)
            for _ in 0..<500 { try RawClient(port: server.port).reset() }
            try Self.expectCanary(server)
            try await until("no connection is open") { server.instance.server.metrics.connectionsOpen.value == 0 }
        }
    }

    // W16
    @Test func aProcessOutOfDescriptorsShedsConnectionsAndRecovers() async throws {
        try withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            let server = try CrashTests.start(directory, port, openFilesMax: 64)
            let key = try CrashTests.adminKey(directory)
            var clients: [RawClient] = []
            for _ in 0..<200 { clients.append(try RawClient(port: port)) }
            let before = server.cpuTicks
            usleep(1_000_000)
            // A loop that spins takes 100 ticks a second.
            #expect(server.cpuTicks - before < 30)
            // The connections that the process has are served, the others were closed.
            let answers = clients.count { client in
                client.apiKey = key
                return
                    (try? client.call(
                        "postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)) != nil
            }
            #expect((1..<64).contains(answers))
            // The store still has what it needs: the write is made while every descriptor is taken.
            let served = try #require(
                clients.first { client in
                    (try? client.call(
                        "postern.v1.Users/Create", UsersCreateRequest(uid: "u1"), returning: UsersCreateResponse.self))
                        != nil
                })
            clients.removeAll { $0 !== served }
            try blockUntil("the next client is served") {
                guard let next = try? RawClient(port: port) else { return false }
                next.apiKey = key
                return (try? next.call(Self.get, UsersGetRequest(uid: "u1"), returning: UsersGetResponse.self)) != nil
            }
            server.kill()
        }
    }
}
