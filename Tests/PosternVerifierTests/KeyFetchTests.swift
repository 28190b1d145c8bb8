import Base
import Messages
import PosternClient
import Synchronization
import TestSupport
import Testing
import Tokens

@testable import PosternVerifier
@testable import Service

/// Many tokens of a key that the verifier does not know yet, at the same moment.
@Suite struct KeyFetchTests {
    private static func callCount(_ fullName: String, _ server: TestServer) throws -> UInt64 {
        let all = server.instance.router.registry.all
        let method = try #require(all.first { $0.descriptor.fullName == fullName })
        return StatusCode.allCases.reduce(0) { $0 + method.metrics.count($1) }
    }

    private static func fetchCount(_ server: TestServer) throws -> UInt64 {
        try callCount("postern.v1.Tokens/ListKeys", server)
    }

    /// Makes a call over `channel` and returns when the server has counted it, and the calls before it: the server
    /// counts a call just after its answer.
    private static func catchUp(_ channel: Channel, _ server: TestServer) async throws {
        let name = "postern.v1.Project/ServerInfo"
        let before = try callCount(name, server)
        _ = try await ProjectClient(channel: channel).serverInfo(ProjectServerInfoRequest())
        try await until("the call is counted") { try callCount(name, server) > before }
    }

    @Test(arguments: [Duration.zero, .milliseconds(300)])
    func `They share one fetch, and all of them wait for it`(floor: Duration) async throws {
        try await withServer { server in
            let admin = try server.connect()
            let channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
            var options = VerifierOptions()
            options.keyRefreshFloor = floor
            let verifier = try await TokenVerifier(channel: channel, options: options)
            try await Task.sleep(for: floor + .milliseconds(50))
            server.clock.advance(by: .seconds(1))
            let _: ProjectRotateSigningKeyResponse = try admin.call(
                "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest(algorithm: "EdDSA"))
            let signedUp: AccountsSignUpResponse = try admin.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ada@example.com", password: Secret("correct horse")))
            let token = try #require(signedUp.tokens).idToken.string
            let before = try Self.fetchCount(server)
            let reasons = await withTaskGroup(of: String.self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        do throws(Failure) {
                            _ = try await verifier.verify(token)
                            return ""
                        } catch {
                            return error.reason
                        }
                    }
                }
                return await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(reasons == [""])
            // A task that began late finds the key.
            try await until("the fetch is counted") { try Self.fetchCount(server) > before }
            try await Self.catchUp(channel, server)
            #expect(try Self.fetchCount(server) - before == 1)
            await channel.shutdown()
        }
    }

    private static func rotateAndSignUp(_ server: TestServer) throws -> AccountsSignUpResponse {
        let admin = try server.connect()
        let _: ProjectRotateSigningKeyResponse = try admin.call(
            "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest(algorithm: "EdDSA"))
        return try admin.call(
            "postern.v1.Accounts/SignUp",
            AccountsSignUpRequest(email: "ada@example.com", password: Secret("correct horse")))
    }

    @Test func `A key that another node made a moment ago is fetched`() async throws {
        try await withTwoServers { first, second in
            let channel = try Channel(address: "127.0.0.1:\(second.port)", credentials: .apiKey(second.adminKey))
            var options = VerifierOptions()
            options.keyRefreshFloor = .zero
            let verifier = try await TokenVerifier(channel: channel, options: options)
            let signedUp = try Self.rotateAndSignUp(first)
            let verified = try await verifier.verify(try #require(signedUp.tokens).idToken.string)
            #expect(verified.uid == signedUp.user?.uid)
            await channel.shutdown()
        }
    }

    @Test func `A node that cannot ask the others gives the keys that it has`() async throws {
        try await withTwoNodes(configure: { $0.limits.journal.patience = .milliseconds(50) }) { nodes in
            let server = nodes.second
            let channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
            var options = VerifierOptions()
            options.keyRefreshFloor = .zero
            let verifier = try await TokenVerifier(channel: channel, options: options)
            let signedUp = try Self.rotateAndSignUp(server)
            nodes.journals.second.isAway.store(true, ordering: .relaxed)
            let verified = try await verifier.verify(try #require(signedUp.tokens).idToken.string)
            #expect(verified.uid == signedUp.user?.uid)
            await channel.shutdown()
        }
    }

    @Test func `A slow answer does not replace the keys of a later fetch`() async throws {
        // Makes no call.
        let channel = try Channel(address: "127.0.0.1:1", credentials: .none)
        let keys = ProjectKeys(source: VerifierSource(channel: channel, options: VerifierOptions()), floor: .zero)
        let (slow, later) = (keys.beginFetch(), keys.beginFetch())
        let newest = KeySet(entries: [])
        keys.publish(newest, of: later)
        keys.publish(KeySet(entries: []), of: slow)
        #expect(keys.published.current === newest)
        let next = KeySet(entries: [])
        keys.publish(next, of: keys.beginFetch())
        #expect(keys.published.current === next)
        await channel.shutdown()
    }

    /// A channel whose connections fail once `gate` is signalled. Until then its thread stands still, and no call ends.
    private static func heldChannel(_ gate: Semaphore) throws -> Channel {
        let transport = ChannelTransport(name: "held") { () throws(Failure) in
            gate.wait()
            gate.signal()
            throw Failure(.connectionFailed, "The loop was held up.")
        }
        var options = ChannelOptions()
        options.loops = ChannelLoops(threadCount: 1)
        return try Channel(transport: transport, credentials: .none, options: options)
    }

    private static func keys(over channel: Channel, patience: Duration) -> ProjectKeys {
        let source = VerifierSource(channel: channel, options: VerifierOptions())
        return ProjectKeys(source: source, floor: .zero, patience: patience)
    }

    @Test func `Revocations are read while the keys are fetched for a revoked one`() async throws {
        try await withServer { server in
            let admin = try server.connect()
            let made: AccountsSignUpResponse = try admin.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ada@example.com", password: Secret("correct horse")))
            let uid = try #require(made.user?.uid)
            let channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
            let source = VerifierSource(channel: channel, options: VerifierOptions())
            let followed = FollowedRevocations(retention: .hours(2), at: .nowWithSleep)
            let first = try await source.begin(followed)
            // The keys would come from a server that does not answer.
            let gate = Semaphore()
            let held = try Self.heldChannel(gate)
            let keys = Self.keys(over: held, patience: .hours(1))
            let fetcher = Task { await keys.fetchWhenAsked() }
            let follower = Task { await source.keepFollowing(followed, first) { keys.fetchSoon() } }
            let listed: ProjectListSigningKeysResponse = try admin.call(
                "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
            let keyID = try #require(listed.keys.first { $0.tokenUse == .idToken }?.keyID)
            let _: ProjectRevokeSigningKeyResponse = try admin.call(
                "postern.v1.Project/RevokeSigningKey", ProjectRevokeSigningKeyRequest(keyID: keyID))
            try await until("the keys are fetched") { keys.begunFetchCount == 1 }
            let before = followed.entryCount
            let _: UsersDeleteResponse = try admin.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
            try await until("the revocation of the user is known") { followed.entryCount > before }
            #expect(keys.begunFetchCount == 1)
            gate.signal()
            for task in [fetcher, follower] { task.cancel() }
            for task in [fetcher, follower] { await task.value }
            await held.shutdown()
            await channel.shutdown()
        }
    }

    @Test func `A task that is cancelled does not wait for the others' fetch`() async throws {
        let gate = Semaphore()
        let channel = try Self.heldChannel(gate)
        let keys = Self.keys(over: channel, patience: .hours(1))
        let waiting = Task { await keys.learnKey(of: "a.b.c") }
        waiting.cancel()
        await waiting.value
        #expect(keys.isFetching)
        gate.signal()
        try await until("the fetch has ended") { !keys.isFetching }
        await channel.shutdown()
    }

    @Test func `Nobody waits long for a server that does not answer`() async throws {
        let gate = Semaphore()
        let channel = try Self.heldChannel(gate)
        let keys = Self.keys(over: channel, patience: .milliseconds(1))
        await keys.learnKey(of: "a.b.c")
        #expect(keys.isFetching)
        // A caller that comes later does not wait at all.
        await keys.learnKey(of: "d.e.f")
        #expect(keys.isFetching)
        gate.signal()
        try await until("the fetch has ended") { !keys.isFetching }
        await channel.shutdown()
    }

    @Test func `Text that cannot be a token causes no fetch`() async throws {
        try await withServer { server in
            let channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
            var options = VerifierOptions()
            options.keyRefreshFloor = .zero
            let verifier = try await TokenVerifier(channel: channel, options: options)
            let token = try #require(try Self.rotateAndSignUp(server).tokens).idToken.string
            try await Self.catchUp(channel, server)
            let before = try Self.fetchCount(server)
            let header = String(token.prefix { $0 != "." })
            for text in ["", "a.b.c", "x\(token)", "\(header).e30.c2ln"] {
                let failure = await #expect(throws: Failure.self) { _ = try await verifier.verify(text) }
                #expect(failure?.reason == "INVALID_ID_TOKEN")
            }
            try await Self.catchUp(channel, server)
            #expect(try Self.fetchCount(server) == before)
            _ = try await verifier.verify(token)
            await channel.shutdown()
        }
    }
}
