public import Base
import JSON
public import Messages
import Outbound
import Rules

extension ProviderClient {
    /// Asks the provider everything that a sign-in would ask, and changes nothing. Throws only `CancellationError`:
    /// failures are in the report.
    public func test(
        _ configuration: ProviderConfiguration, now: Timestamp, deadline: Instant
    ) async throws -> [ProviderTestStep] {
        let call = ProviderCall(configuration, now: now, deadline: deadline)
        var steps: [ProviderTestStep] = []
        steps.append(try await step("discovery") { try await self.testDiscovery(call) })
        steps.append(
            try await step("jwks") {
                guard !configuration.issuer.isEmpty else { return (.skipped, "this provider has no ID tokens") }
                let keys = try await self.metadata.keys(of: configuration, now: now) { _ in false }
                guard keys.count > 0 else { return (.failed, "there is no key for RS256, ES256 or EdDSA in the set") }
                return (.passed, "\(keys.count) keys that ID tokens can be verified with")
            })
        steps.append(
            try await step("user_info") {
                do {
                    return try await self.testUserInfo(call)
                } catch FederationError.misconfigured(.noUserInfoEndpoint) {
                    return (.skipped, "there is no user-info endpoint: only ID tokens can be used")
                }
            })
        steps.append(try await step("token_check") { try await self.binding.test(call) })
        steps.append(
            try await step("token_exchange") {
                guard configuration.hasClientSecret else {
                    return (.skipped, "there is no client secret: authorization codes cannot be exchanged")
                }
                return try await self.testExchange(call)
            })
        return steps
    }

    /// A provider whose endpoints are all configured may have no document. If a sign-in asks for the document only to
    /// learn how the client proves itself, it does without it.
    private func testDiscovery(_ call: ProviderCall) async throws -> (ProviderTestResult, String) {
        let configuration = call.configuration
        let endpoints = configuration.endpoints
        let tellsAuthentication =
            configuration.known.clientAuthentication == .discovered && configuration.hasClientSecret
        let isNeeded =
            endpoints.jwks.isEmpty || (endpoints.token.isEmpty && configuration.hasClientSecret)
            || (endpoints.userInfo.isEmpty && configuration.known.issuer.isEmpty)
        guard isNeeded || tellsAuthentication || !endpoints.discovery.isEmpty, let location = configuration.discoveryURL
        else { return (.skipped, "not needed: the endpoints are known") }
        do {
            _ = try configuration.url(location)
            _ = try await metadata.document(of: configuration, now: call.now)
            return (.passed, "the document is the issuer's")
        } catch let error as FederationError where !isNeeded && error != .overloaded {
            let consequence = tellsAuthentication ? "The client secret is sent by HTTP Basic authentication. " : ""
            return (
                .skipped,
                "the document cannot be had and is not needed. \(consequence)The reason: \(error.explanation)"
            )
        }
    }

    /// Sends a string that cannot be a token: if the endpoint refuses it, the endpoint works. A sign-in treats a 404 as
    /// a refusal too, because some providers answer so; here it is more likely that the URL is wrong.
    private func testUserInfo(_ call: ProviderCall) async throws -> (ProviderTestResult, String) {
        let url = try call.configuration.url(try await userInfo.endpoint(for: call))
        let request = HTTPRequest(
            url, fields: [ProviderRequests.json, try ProviderRequests.bearer(Secret("postern-test"))],
            policy: call.configuration.policy)
        let (status, isObject) = try await userInfo.requests.send(request, for: call) { answer in
            (answer.status, (try? ProviderRequests.object(answer)) != nil)
        }
        switch status {
        case 400, 401, 403: return (.passed, "the endpoint answers and refuses a wrong token")
        case 404, 405, 410: return (.failed, Self.nothingThere(status))
        default:
            guard isObject else { throw FederationError.unavailable(.badAnswer) }
            return (.failed, "the endpoint takes a token that is none: whoever it names could be anybody")
        }
    }

    /// Sends a string that cannot be a code. RFC 6749 §5.2: a token endpoint names its error in JSON.
    private func testExchange(_ call: ProviderCall) async throws -> (ProviderTestResult, String) {
        let answer = try await exchange.ask(Secret("postern-test"), redirectURI: .empty, verifier: .empty, call)
        if answer.status == 401 || answer.refusal == .client {
            throw FederationError.misconfigured(.clientRefused)
        }
        if [404, 405, 410].contains(answer.status) { return (.failed, Self.nothingThere(answer.status)) }
        guard answer.status < 500, answer.isObject else { throw FederationError.unavailable(.badAnswer) }
        guard answer.refusal != nil else {
            return (.failed, "the endpoint takes a code that is none: check the URL")
        }
        return (.passed, "the endpoint answers and does not refuse client id and secret")
    }

    static func nothingThere(_ status: Int) -> String {
        "there is no such endpoint (HTTP \(status)): check the URL"
    }

    private func step(
        _ name: Text, _ body: () async throws -> (ProviderTestResult, String)
    ) async throws -> ProviderTestStep {
        let start = Instant.now
        var result = ProviderTestResult.failed
        var message: String
        do {
            (result, message) = try await body()
        } catch let error as FederationError {
            message = error.explanation
        } catch let failure as Failure {
            message = failure.message
        }
        return ProviderTestStep(
            name: name, result: result, message: Text(message),
            durationNanos: Instant.now.nanoseconds(since: start))
    }
}

extension FederationError {
    /// The explanation for an operator: what went wrong and what to do.
    public var explanation: String {
        switch self {
        case .flawed(let flaw): "the token is not acceptable: \(flaw.rawValue)"
        case .rejected: "the provider refused the credential"
        case .otherClient: "the credential was issued to another client"
        case .unboundToken: "the provider does not tell to which client an access token was issued"
        case .overloaded: "too many questions to this tenant's providers are on their way; try again"
        case .unavailable(let outage): outage.explanation
        case .misconfigured(let fault): fault.explanation
        }
    }
}

extension FederationError.Outage {
    fileprivate var explanation: String {
        switch self {
        case .unreachable: "the provider cannot be reached: check the host name, the network and the firewall"
        case .slow: "the provider did not answer in time"
        case .untrusted: "the provider's certificate is not trusted for its name by this machine"
        case .addressNotAllowed:
            "the name leads to an address that is not public; a project-admin can set allow_private_addresses"
        case .tooLarge: "the answer is too long to be what was asked for"
        case .redirected: "the provider redirects to another place: configure that one"
        case .badAnswer: "the answer is not what such an endpoint answers: check the URL"
        }
    }
}

extension FederationError.Fault {
    fileprivate var explanation: String {
        switch self {
        case .noIssuer: "the provider has no issuer"
        case .badEndpoint:
            "an endpoint is no https URL that may be asked; allow_http_loopback allows http on this machine"
        case .noKeys: "the discovery document names no jwks_uri"
        case .noAuthorizationEndpoint: "there is no authorization endpoint"
        case .noTokenEndpoint: "there is no token endpoint"
        case .noUserInfoEndpoint: "there is no user-info endpoint"
        case .noClientSecret: "the provider can only be asked with a client secret, and there is none"
        case .badPrivateKey: "the client secret is no PEM of a P-256 private key, as Apple gives it out"
        case .otherIssuer: "the discovery document names another issuer than is configured: they must be equal"
        case .clientRefused: "the provider does not accept client id and client secret"
        }
    }
}
