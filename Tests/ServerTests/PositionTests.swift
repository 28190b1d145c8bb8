import Base
import Identity
import Messages
import Reactor
import Store
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Service

/// What callers of a cluster carry from one node to another, so that they read their own writes.
@Suite struct PositionTests {
    private static func answer(
        _ client: RawClient, _ fullName: String, _ message: some Message, _ metadata: [OutgoingMetadata.Entry] = []
    ) throws -> (position: Text?, failure: Failure?) {
        let stream = client.nextStream()
        try client.send(client.request(fullName, message, stream: stream, metadata: metadata))
        let envelope = try WireResponse(decoding: try client.readFrame().payload)
        let position = envelope.metadata.first { $0.key == "x-postern-position" }?.value
        return (position, envelope.status.flatMap { $0.code == 0 ? nil : RawClient.failure($0) })
    }

    private static func at(_ position: Text) -> [OutgoingMetadata.Entry] {
        [.init(key: "x-postern-position", value: position)]
    }

    private static let latest = OutgoingMetadata.Entry(key: "x-postern-consistency", value: "latest")

    private func photo(_ client: RawClient, _ uid: Text, _ metadata: [OutgoingMetadata.Entry]) throws -> Text {
        let got: UsersGetResponse = try client.call(
            "postern.v1.Users/Get", UsersGetRequest(uid: uid), metadata: metadata)
        return got.user?.photoURL ?? .empty
    }

    private func signUp(_ email: Text) -> AccountsSignUpRequest {
        AccountsSignUpRequest(email: email, password: Secret("correct horse"))
    }

    private func update(_ uid: Text, photo: Text) -> UsersUpdateRequest {
        UsersUpdateRequest(
            uid: uid, updateMask: ProtobufFieldMask(paths: ["photo_url"]), photoURL: photo)
    }

    @Test func whoCarriesAPositionReadsItsOwnWritesOnAnyNode() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            let uid = try #require(try one.signUp("ada@example.com").user).uid
            #expect(try two.get(uid).uid == uid)
            let reader = try second.connect()
            for round in 0..<10 {
                let url = Text("https://example.com/\(round)")
                let written = try Self.answer(one.client, "postern.v1.Users/Update", update(uid, photo: url))
                let position = try #require(written.position)
                // Without the position the node answers from its old state: nobody tells it of changes.
                #expect(try photo(reader, uid, []) != url)
                let metadata = round % 2 == 0 ? Self.at(position) : [Self.latest]
                #expect(try photo(reader, uid, metadata) == url)
            }
        }
    }

    /// Calls that come in together share a snapshot, which may be older than what the node has reached since.
    @Test func aPositionBindsACallThatCameInWithOthers() async throws {
        try await withTwoServers { first, second in
            let one = try IdentityClient(first)
            let uid = try #require(try one.signUp("ada@example.com").user).uid
            #expect(try IdentityClient(second).get(uid).uid == uid)
            let written = try Self.answer(
                one.client, "postern.v1.Users/Update", update(uid, photo: "https://example.com/new"))
            let position = try #require(written.position)
            let carrier = MemoryCarrier(router: second.instance.router, loop: second.instance.loops.loops[0])
            let store = second.project.store
            let answers = try await carrier.callTwice(
                "postern.v1.Users/Get", UsersGetRequest(uid: uid).encoded(),
                authorization: second.adminKey.bearer,
                position: position
            ) { try? store.writeBlocking { _ in } }
            #expect(store.journalPosition?.text == position)
            #expect(try answers.first.message(UsersGetResponse.self).user?.photoURL == "")
            #expect(try answers.second.message(UsersGetResponse.self).user?.photoURL == "https://example.com/new")
        }
    }

    @Test func aPageWaitsForThePositionToo() async throws {
        try await withTwoServers { first, second in
            let (one, reader) = (try IdentityClient(first), try second.connect())
            for number in 1...5 {
                let request = signUp(Text("user\(number)@example.com"))
                let position = try #require(try Self.answer(one.client, "postern.v1.Accounts/SignUp", request).position)
                let page: UsersListResponse = try reader.call(
                    "postern.v1.Users/List", UsersListRequest(), metadata: Self.at(position))
                #expect(page.users.count == number)
            }
        }
    }

    @Test func onlyAnswersToChangesTellAPosition() async throws {
        try await withTwoServers { first, _ in
            let client = try first.connect()
            #expect(
                try Self.answer(client, "postern.v1.Project/ServerInfo", ProjectServerInfoRequest()).position == nil)
            let request = signUp("ada@example.com")
            #expect(try Self.answer(client, "postern.v1.Accounts/SignUp", request).position != nil)
            #expect(try Self.answer(client, "postern.v1.Accounts/SignUp", request).failure?.is(.emailExists) == true)
        }
    }

    @Test func aPositionThatNoServerOfTheClusterToldIsRefused() async throws {
        try await withTwoServers { first, second in
            let client = try first.connect()
            let request = signUp("ada@example.com")
            let position = try #require(try Self.answer(client, "postern.v1.Accounts/SignUp", request).position).string
            let (cluster, number) = (position.prefix(32), try #require(UInt64(position.dropFirst(33))))
            let end = try #require(second.project.store.journalPosition)
            #expect(number > end.number)
            let reader = try second.connect()
            // The position itself is there, and the next one is not.
            for (wanted, isGood) in [("\(number)", true), ("\(number + 1)", false), ("\(UInt64.max)", false)] {
                let (_, failure) = try Self.answer(
                    reader, "postern.v1.Project/ServerInfo", ProjectServerInfoRequest(),
                    Self.at(Text("\(cluster).\(wanted)")))
                #expect((failure == nil) == isGood && (isGood || failure?.is(.invalidPosition) == true))
            }
            let other = String(repeating: "ab", count: 16)
            let bad = [
                "", "1", "\(cluster)", "\(cluster).", "\(cluster).-1", "\(cluster).1x",
                "\(cluster).18446744073709551616",
                "\(other).1", "\(cluster.dropLast())g.1", "\(position).1", "\(cluster).000000000000000000001",
            ]
            for text in bad {
                for method in ["postern.v1.Project/ServerInfo", "postern.v1.Accounts/SignUp"] {
                    let (_, failure) = try Self.answer(
                        reader, method, ProjectServerInfoRequest(), Self.at(Text(text)))
                    #expect(failure?.is(.invalidPosition) == true, "\(method) \(text)")
                }
            }
            let (_, failure) = try Self.answer(
                reader, "postern.v1.Project/ServerInfo", ProjectServerInfoRequest(),
                [.init(key: "x-postern-consistency", value: "lately")])
            #expect(failure?.is(.invalidConsistency) == true)
        }
    }

    @Test func withoutTheEngineTheNodeSaysThatItIsBehind() async throws {
        try await withTwoNodes(configure: { $0.limits.journal.patience = .milliseconds(50) }) { nodes in
            let client = try nodes.first.connect()
            let position = try #require(nodes.first.project.store.journalPosition as JournalPosition?)
            nodes.journals.first.isAway.store(true, ordering: .relaxed)
            let info = ProjectServerInfoRequest()
            // For a position that the node has reached it need not ask the journal.
            #expect(
                try Self.answer(client, "postern.v1.Project/ServerInfo", info, Self.at(position.text)).failure == nil)
            let next = JournalPosition(clusterID: position.clusterID, number: position.number + 1).text
            for metadata in [[Self.latest], Self.at(next)] {
                let failure = try Self.answer(client, "postern.v1.Project/ServerInfo", info, metadata).failure
                #expect(failure?.is(.nodeBehind) == true && failure?.code == .unavailable)
                #expect(failure?.retryAfter != nil)
            }
        }
    }

    @Test func gRPCCarriesThePositionAsWell() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try GRPCCaller(port: first.port), try GRPCCaller(port: second.port))
            let key = first.adminKey.bearer
            let credential = OutgoingMetadata.Entry(key: "authorization", value: key)
            for number in 1...3 {
                let request = signUp(Text("user\(number)@example.com"))
                let made = try one.call("postern.v1.Accounts/SignUp", [request.encoded()], metadata: [credential])
                let position = Text(try #require(made.text("x-postern-position")))
                let listed = try two.call(
                    "postern.v1.Users/List", [UsersListRequest().encoded()],
                    metadata: [credential] + Self.at(position))
                #expect(try UsersListResponse(decoding: try #require(listed.messages.first)).users.count == number)
            }
        }
    }

    @Test func aServerOutsideOfAClusterIgnoresWhatCallersCarry() async throws {
        try await withServer { server in
            guard !server.project.store.isInCluster else { return }
            let client = try server.connect()
            for metadata in [Self.at("nonsense"), [.init(key: "x-postern-consistency", value: "lately")]] {
                let request = signUp(Text("a\(metadata[0].key.byteCount)@example.com"))
                let (position, failure) = try Self.answer(client, "postern.v1.Accounts/SignUp", request, metadata)
                #expect(position == nil && failure == nil)
            }
        }
    }
}
