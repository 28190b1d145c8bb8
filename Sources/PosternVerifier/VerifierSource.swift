import Base
import Messages
import PosternClient

/// The calls of a verifier to the server.
struct VerifierSource: Sendable {
    let channel: Channel
    var options: VerifierOptions
    /// The longest wait for the first message of a feed, connecting included. When a feed is asked for again, the
    /// channel tries to connect at once, so that its own pauses do not count.
    var firstMessageMax = Duration.seconds(10)

    /// The longest wait for each later message.
    private var silenceMax: Duration { max(firstMessageMax, .seconds(3 * heartbeatSeconds)) }
    private var heartbeatSeconds: Int64 { Int64(Int32(clamping: max(1, options.heartbeat.components.seconds))) }

    private var tenantID: Text { if case .one(let tenantID) = options.tenants { tenantID } else { .empty } }

    /// The issuer and the audience of the project's tokens.
    func project() async throws(Failure) -> (issuer: Text, audience: Text) {
        let info = try await ProjectClient(channel: channel).serverInfo(ProjectServerInfoRequest())
        switch options.tokenKind {
        case .idToken: return (info.issuer, info.projectID)
        case .sessionCookie: return (Text("\(info.issuer)/session-cookie"), info.projectID)
        }
    }

    /// The newest keys: a node of a cluster asks the others first, because a token may be of a key that was made a
    /// moment ago. A node that cannot ask gives the keys that it has.
    ///
    /// `waits`: for a connection, instead of failing during the channel's pauses between attempts to connect.
    func jwks(waits: Bool) async throws(Failure) -> [UInt8] {
        let newest = CallOptions(timeout: .seconds(2), waitsForConnection: waits, readsLatest: true)
        do throws(Failure) {
            return try await jwks(newest)
        } catch {
            guard error.code == .unavailable || error.code == .deadlineExceeded else { throw error }
            return try await jwks(CallOptions(waitsForConnection: waits))
        }
    }

    private func jwks(_ call: CallOptions) async throws(Failure) -> [UInt8] {
        let use: TokenUse = options.tokenKind == .idToken ? .idToken : .sessionCookie
        return try await TokensClient(channel: channel).listKeys(
            TokensListKeysRequest(tokenUse: use), options: call
        ).jwksJSON
    }

    /// Asks the server to verify a token.
    func verify(_ token: Text) async throws(Failure) {
        let client = TokensClient(channel: channel)
        let isAny = options.tenants == .any
        switch options.tokenKind {
        case .idToken:
            _ = try await client.verifyIdToken(
                TokensVerifyIdTokenRequest(tenantID: tenantID, idToken: token, anyTenant: isAny))
        case .sessionCookie:
            _ = try await client.verifySessionCookie(
                TokensVerifySessionCookieRequest(tenantID: tenantID, sessionCookie: token, anyTenant: isAny))
        }
    }

    /// Opens the feed and reads its snapshot.
    func begin(_ followed: FollowedRevocations) async throws(Failure) -> FeedStream {
        let messages = try await open(followed, waits: false)
        repeat {
            guard let message = try await messages.next() else { throw Self.ended }
            followed.apply(message, at: .nowWithSleep)
        } while !followed.isComplete
        return messages
    }

    /// The source for all later calls. If the options name no tenant, it names the feed's: the credential's tenant if
    /// the credential is bound to one, and else the default pool. Naming it means that the server refuses the feed if
    /// the credential gets another scope.
    func naming(tenantOf followed: FollowedRevocations) -> VerifierSource {
        guard options.tenants == .one(.empty) else { return self }
        var named = self
        named.options.tenants = .one(followed.onlyTenantID ?? .empty)
        return named
    }

    private func open(_ followed: FollowedRevocations, waits: Bool) async throws(Failure) -> FeedStream {
        let request = TokensWatchRevocationsRequest(
            tenantID: tenantID, anyTenant: options.tenants == .any, cursor: followed.cursor,
            heartbeatSeconds: Int32(clamping: heartbeatSeconds),
            sessionCookies: options.tokenKind == .sessionCookie)
        let stream = try await TokensClient(channel: channel).watchRevocations(
            request, options: CallOptions(waitsForConnection: waits))
        return FeedStream(stream, firstMax: firstMessageMax, laterMax: silenceMax)
    }

    /// Reads the feed until the task is cancelled. After a lost connection, and when the feed is silent for three
    /// heartbeats (10 s at least), it continues where it was. After a large correction of the server's clock it begins
    /// anew, with a snapshot.
    ///
    /// `onKeyRevoked` is called once the revocation of a key counts. It must not wait: until it returns, no further
    /// revocation is read.
    func keepFollowing(
        _ followed: FollowedRevocations, _ first: FeedStream, onKeyRevoked: @Sendable () -> Void
    ) async {
        var messages: FeedStream? = first
        var pauses = FeedPauses()
        pauses.heard(at: .now)
        while !Task.isCancelled {
            var failure: Failure?
            do throws(Failure) {
                if messages == nil { messages = try await open(followed, waits: true) }
                while let message = try await messages?.next() {
                    let mustBeginAnew = followed.apply(message, at: .nowWithSleep)
                    pauses.heard(at: .now)
                    if message.revocations.contains(where: { $0.kind == .signingKey }) { onKeyRevoked() }
                    if mustBeginAnew { break }
                }
            } catch {
                // As after a stream that ends without an error: another one is opened.
                failure = error
            }
            messages = nil
            followed.streamEnded(failure)
            let longest = pauses.ended(at: .now)
            try? await Task.sleep(for: longest * Double.random(in: 0.5...1))
        }
    }

    private static let ended = Failure(.streamEnded, "The server ended the feed of revocations.")
}
