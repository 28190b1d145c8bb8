import Base
import Glibc
import Messages
import TestSupport
import Testing
import Transport
import Wire

@testable import Service

/// Many peers send requests and do not read, or begin requests and do not end them. The memory that they hold stays
/// within one limit, others are served, and all memory is given back when the peers are gone.
@Suite struct UnreadAnswerAttackTests {
    private typealias Attacks = UnreadAnswerAttackTests

    private static let list = "postern.v1.Users/List"
    private static let get = "postern.v1.Users/Get"
    private static let peerCount = 24
    private static let memoryMax = 8 << 20

    /// How a peer behaves.
    enum Kind: CaseIterable {
        /// Asks and never reads.
        case neverReads
        /// Reads a byte now and then.
        case readsByteByByte
        /// Reads the first answer and then nothing more.
        case readsThenStops
        /// Shows its credential with a call, then sends most of a frame of the greatest length.
        case halfRequest
        /// The same without a credential.
        case strangersHalfRequest
        /// Opens streams and gives no credit for the answers, while its further messages pile up.
        case givesNoCredit
    }

    /// The request that a peer sends; not used by peers that never finish a request.
    enum Question: CaseIterable {
        case users, oneUser, tenants, descriptors

        fileprivate func append(_ client: RawClient, to bytes: inout [UInt8]) {
            let stream = client.nextStream()
            switch self {
            case .users: bytes += client.request(Attacks.list, UsersListRequest(pageSize: 1_000), stream: stream)
            case .oneUser: bytes += client.request(Attacks.get, UsersGetRequest(uid: "u1"), stream: stream)
            case .tenants: bytes += client.request("postern.v1.Tenants/List", TenantsListRequest(), stream: stream)
            case .descriptors: bytes += Attacks.descriptors(client, stream: stream)
            }
        }
    }

    private static func descriptors(_ client: RawClient, stream: UInt32, more: Int = 0) -> [UInt8] {
        let ask = GRPCServerReflectionRequest(messageRequest: .fileByFilename("postern/v1/users.proto"))
        var bytes = client.request(
            "grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ask, stream: stream, kind: .remoteOpen)
        for _ in 0..<more {
            var buffer = ByteBuffer()
            _ = buffer.appendData(stream: stream) { ask.encode(into: &$0) }
            bytes += buffer.copyBytes()
        }
        return bytes
    }

    static let cases: [(Kind, Question)] = Kind.allCases.flatMap { kind -> [(Kind, Question)] in
        switch kind {
        case .neverReads, .readsByteByByte, .readsThenStops: Question.allCases.map { (kind, $0) }
        case .halfRequest, .strangersHalfRequest, .givesNoCredit: [(kind, .users)]
        }
    }

    /// Half a megabyte of users, so that a page is as long as it may be.
    private static func fill(_ server: TestServer) throws {
        let client = try server.connect()
        let photo = Text("https://x/" + String(repeating: "x", count: 2_000))
        for index in 0..<250 {
            _ = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: Text("u\(index)"), photoURL: photo),
                returning: UsersCreateResponse.self)
        }
    }

    private static func expectCanary(_ server: TestServer, _ comment: Comment) throws {
        let client = try server.connect()
        for _ in 0..<5 {
            let answer = try client.call(get, UsersGetRequest(uid: "u1"), returning: UsersGetResponse.self)
            #expect(answer.user?.uid == "u1", comment)
        }
        // A client that reads gets a page, at the latest when the peers that do not read have been closed.
        for attempt in 0... {
            do {
                let page = try client.call(list, UsersListRequest(pageSize: 1_000), returning: UsersListResponse.self)
                #expect(page.users.count > 100, comment)
                return
            } catch let failure as Failure where failure.reason == "SERVER_OVERLOADED" && attempt < 500 {
                #expect(failure.retryAfter != nil)
                usleep(20_000)
            }
        }
    }

    /// Two streams each wait with a message, since their client grants no credit; many more wait behind one of them.
    @Test func `Events that wait behind a stream's message count as well`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for index in 0..<40 {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("u\(index)")))
                guard index < 2 else { continue }
                let _: UsersDeleteResponse = try client.call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(uid: Text("u\(index)")))
            }
            client.close()
            let memory = server.instance.server.memory
            try await until("the client is forgotten") { memory.byteCount == 0 }
            func held(by kinds: [EventKind]) throws -> Int {
                let stream = try RawStream<AuditWatchEventsResponse>(
                    server, "postern.v1.Audit/WatchEvents",
                    AuditWatchEventsRequest(afterSequence: -1, filter: EventFilter(kinds: kinds)), initialWindow: 1)
                // The first event is sent, and the next one waits.
                _ = try stream.next()
                var (seen, sameCount) = (0, 0)
                try blockUntil("what is held stays the same") {
                    let now = memory.byteCount
                    sameCount = now == seen && now > 0 ? sameCount + 1 : 0
                    seen = now
                    return sameCount == 10
                }
                stream.client.close()
                try blockUntil("the stream is forgotten") { memory.byteCount == 0 }
                return seen
            }
            let (few, many) = (try held(by: [.userDeleted]), try held(by: [.userCreated]))
            print("held by two events: \(few), by forty: \(many)")
            // An event takes more than 40 bytes; 38 more wait.
            #expect(many > few + 38 * 40)
        }
    }

    @Test func `Peers that keep us waiting hold no more than the bound`() async throws {
        #expect(Self.cases.count == 15)
        try await withServer(configure: {
            $0.limits.connectionMemoryMax = Self.memoryMax
            $0.limits.unreadPatience = .milliseconds(50)
        }) { server in
            try Self.fill(server)
            let memory = server.instance.server.memory
            for (kind, question) in Self.cases {
                let comment: Comment = "\(kind) \(question)"
                let peers = try (0..<Self.peerCount).map { _ in try Self.attack(server, kind, question) }
                try Self.expectCanary(server, comment)
                for peer in peers { peer.close() }
                try await until("all is given back, \(kind) \(question): \(memory.byteCount)") { memory.byteCount == 0 }
            }
            #expect(memory.peakByteCount > Self.memoryMax / 2)
            // What each of the two loops reads and answers in that turn comes on top: a frame of 4 MiB, a page that is
            // made, and one that is begun.
            #expect(memory.peakByteCount <= Self.memoryMax + 2 * (4_096 + 2 * 256) * 1_024)
            #expect(server.instance.server.metrics.connectionsClosedForMemory.value > 0)
            #expect(server.instance.server.metrics.pagesWaiting.value == 0)
        }
    }

    private static func attack(_ server: TestServer, _ kind: Kind, _ question: Question) throws -> RawClient {
        let client = try RawClient(port: server.port, receiveByteCount: 4_096)
        if kind != .strangersHalfRequest { client.apiKey = server.adminKey }
        var bytes: [UInt8] = []
        switch kind {
        case .neverReads, .readsByteByByte, .readsThenStops:
            for _ in 0..<40 { question.append(client, to: &bytes) }
        case .halfRequest:
            Question.oneUser.append(client, to: &bytes)
            bytes += half(client.nextStream(), byteCount: 4 << 20)
        case .strangersHalfRequest: bytes += half(client.nextStream(), byteCount: 64 << 10)
        case .givesNoCredit:
            var hello = ByteBuffer()
            hello.appendHello(WireHello(protocolVersion: 1, initialWindow: 1, software: "raw"))
            bytes += hello.copyBytes()
            for _ in 0..<20 { bytes += descriptors(client, stream: client.nextStream(), more: 200) }
        }
        // Sends only as much as the server reads.
        try? client.sendWhatIsTaken(bytes)
        switch kind {
        case .readsThenStops: _ = try? client.readFrame()
        case .readsByteByByte: for _ in 0..<3 { _ = try? client.receive(1) }
        default: break
        }
        return client
    }

    /// The header of a frame, and all of its payload but the last byte.
    private static func half(_ stream: UInt32, byteCount: Int) -> [UInt8] {
        var buffer = ByteBuffer()
        FrameHeader(payloadByteCount: UInt32(byteCount), stream: stream, type: .request).append(to: &buffer)
        return buffer.copyBytes() + [UInt8](repeating: 0, count: byteCount - 1)
    }

    @Test func `Strangers give way before those with a credential, and readers never`() async throws {
        try await withServer(configure: {
            $0.threads = 1
            $0.limits.connectionMemoryMax = Self.memoryMax
            $0.limits.unreadPatience = .milliseconds(50)
        }) { server in
            try Self.fill(server)
            let reader = try server.connect()
            func read() throws {
                _ = try reader.call(Self.get, UsersGetRequest(uid: "u1"), returning: UsersGetResponse.self)
            }
            try read()
            // Fills about half of the limit, then adds strangers until the server closes a connection.
            var known: [RawClient] = []
            while server.instance.server.memory.byteCount < Self.memoryMax / 2, known.count < 40 {
                known.append(try Self.attack(server, .neverReads, .users))
                usleep(50_000)
            }
            #expect(server.instance.server.memory.byteCount >= Self.memoryMax / 2)
            var strangers: [RawClient] = []
            let closed = server.instance.server.metrics.connectionsClosedForMemory
            while closed.value == 0, strangers.count < 200 {
                strangers.append(try Self.attack(server, .strangersHalfRequest, .users))
                try read()
            }
            try await until("a connection is closed for its memory") { closed.value > 0 }
            try await until("there is memory") { server.instance.server.memory.pressure < .exhausted }
            try read()
            // No connection that showed a credential was closed: their number is unchanged.
            try await until("only strangers were closed") {
                server.instance.server.metrics.connectionsOpen.value
                    == Int64(server.instance.server.unauthenticatedCount + known.count + 1)
            }
            for client in known + strangers { client.close() }
        }
    }

    @Test func `A process gives back what listers held`() throws {
        try withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            let server = try CrashTests.start(directory, port)
            defer { server.kill() }
            let key = try CrashTests.adminKey(directory)
            let admin = try RawClient(port: port)
            admin.apiKey = key
            let photo = Text("https://x/" + String(repeating: "x", count: 2_000))
            for index in 0..<250 {
                _ = try admin.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("u\(index)"), photoURL: photo),
                    returning: UsersCreateResponse.self)
            }
            let before = server.anonymousByteCount
            let peers = try (0..<100).map { _ -> RawClient in
                let client = try RawClient(port: port, receiveByteCount: 4_096)
                client.apiKey = key
                var bytes: [UInt8] = []
                for _ in 0..<40 { Question.users.append(client, to: &bytes) }
                try client.sendWhatIsTaken(bytes)
                return client
            }
            let held = 100 * 256 * 1024
            try blockUntil("the answers are held") { server.anonymousByteCount > before + held / 2 }
            // The documented limit: a page, and half as much again for what is around it. In a build for tests, the
            // tasks of the calls that wait are larger: a release holds 5 MB less here. This looks for a while, because
            // an excess would grow after the first look.
            let unoptimizedTasks = 100 * Limits().pagesWaitingMax * 5 * 1024
            let looks = (0..<100).map { _ -> Int in
                usleep(10_000)
                return server.anonymousByteCount
            }
            #expect(looks.max() ?? 0 < before + held * 3 / 2 + unoptimizedTasks)
            for peer in peers { peer.close() }
            try blockUntil("the memory is given back") { server.anonymousByteCount < before + held / 4 }
        }
    }
}
