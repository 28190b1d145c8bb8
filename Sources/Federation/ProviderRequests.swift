import Base
import JSON
import Messages
import Outbound
import Rules

/// Calls to a provider's endpoints: judges the answer's status, and has the answer read where it came in.
///
/// An answer is parsed on the thread that received it, at the expense of the tenant, and only the parsed value leaves
/// that thread. The provider chooses how long the answer is, and an event loop must not have to search or free a large
/// one.
struct ProviderRequests: Sendable {
    let client: HTTPClient
    let counts: ProviderCounts
    /// The processor time for reading what providers publish and answer. It is bounded because the tenant that
    /// configures a provider chooses how much that is.
    let time: ProcessorBudget

    static let json = HTTPRequest.Field("Accept", "application/json")

    static func bearer(_ token: Secret) throws(FederationError) -> HTTPRequest.Field {
        HTTPRequest.Field("Authorization", Text(unchecked: Array("Bearer ".utf8) + (try text(of: token)).bytes))
    }

    /// RFC 6749 §2.3.1: both parts are form-encoded before they are joined.
    static func basic(_ id: Text, _ secret: Secret) -> HTTPRequest.Field {
        let encodedSecret = secret.withBytes { PercentEncoding.encode([UInt8]($0)) }
        let pair = PercentEncoding.encode(id) + [UInt8(ascii: ":")] + encodedSecret
        return HTTPRequest.Field("Authorization", Text(unchecked: Array("Basic ".utf8) + Base64.standard.encode(pair)))
    }

    /// A form from the client of `configuration`, which proves itself by `secret` (RFC 6749 §2.3.1), or only names
    /// itself if `secret` is empty.
    static func form(
        _ url: HTTPURL, _ members: [(name: Text, value: Secret)], from configuration: ProviderConfiguration,
        _ secret: Secret, by authentication: KnownProvider.ClientAuthentication
    ) -> HTTPRequest {
        let clientID = configuration.provider.clientID
        var members = members
        var fields = [json]
        if authentication == .basic && !secret.isEmpty {
            fields.append(basic(clientID, secret))
        } else {
            members.append(("client_id", Secret(clientID.bytes)))
            if !secret.isEmpty { members.append(("client_secret", secret)) }
        }
        return HTTPRequest.form(url, members, fields: fields, policy: configuration.policy)
    }

    /// A token in a form that a header field may hold: RFC 6750 §2.1 allows less, but some providers use more.
    static func text(of token: Secret) throws(FederationError) -> Text {
        let bytes = token.withBytes { [UInt8]($0) }
        guard !bytes.isEmpty, bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .rejected }
        return Text(unchecked: bytes)
    }

    /// Sends a request and reads its answer with `read`; any status counts as an answer. Throws `FederationError`,
    /// OVERLOADED before anything is sent if the tenant's processor time is spent; `CancellationError`, and the error
    /// of a full or closing pool.
    func send<Value: Sendable>(
        _ request: HTTPRequest, for call: ProviderCall, _ read: @escaping @Sendable (HTTPAnswer) throws -> Value
    ) async throws -> Value {
        let (tenant, now) = (call.tenantID, call.now)
        try time.require(tenant, now: now)
        let start = Instant.now
        do {
            let value = try await client.send(
                request, tenant: tenant, source: call.source, deadline: call.deadline
            ) { [time] answer in
                try time.spend(tenant, now: now) { try read(answer) }
            }
            counts.note(.success(()), nanoseconds: Instant.now.nanoseconds(since: start))
            return value
        } catch {
            let error = (error as? OutboundError).map { FederationError($0) } ?? error
            counts.note(.failure(error), nanoseconds: Instant.now.nanoseconds(since: start))
            throw error
        }
    }

    /// Runs `work` where answers are read, at the expense of the tenant. Throws as `send` does.
    func compute(for call: ProviderCall, _ work: @escaping @Sendable () -> Void) async throws {
        let (tenant, now) = (call.tenantID, call.now)
        try time.require(tenant, now: now)
        do {
            try await client.compute(tenant: tenant, source: call.source, deadline: call.deadline) { [time] in
                time.spend(tenant, now: now, work)
            }
        } catch let error as OutboundError {
            throw FederationError(error)
        }
    }

    /// What `read` takes from an object that only the provider can have made for this token. A refusal of the token is
    /// `rejected`; any other failure is an outage.
    func object<Value: Sendable>(
        _ request: HTTPRequest, for call: ProviderCall, _ read: @escaping @Sendable (JSONValue) throws -> Value
    ) async throws -> Value {
        try await send(request, for: call) { answer in
            if [400, 401, 403, 404, 422].contains(answer.status) { throw FederationError.rejected }
            return try read(try Self.object(answer))
        }
    }

    static func object(_ answer: HTTPAnswer) throws(FederationError) -> JSONValue {
        guard answer.isSuccess, let value = try? JSONValue(parsing: answer.body), value.object != nil else {
            throw .unavailable(.badAnswer)
        }
        return value
    }
}

extension FederationError {
    init(_ error: OutboundError) {
        switch error {
        case .malformedRequest: self = .misconfigured(.badEndpoint)
        case .addressNotAllowed: self = .unavailable(.addressNotAllowed)
        case .cannotResolve, .cannotConnect: self = .unavailable(.unreachable)
        case .timedOut: self = .unavailable(.slow)
        case .untrusted: self = .unavailable(.untrusted)
        case .tooLarge: self = .unavailable(.tooLarge)
        case .redirected: self = .unavailable(.redirected)
        case .broken: self = .unavailable(.badAnswer)
        case .overloaded: self = .overloaded
        }
    }
}
