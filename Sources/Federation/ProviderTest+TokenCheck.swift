import Base
import JSON
import Messages
import Outbound
import Rules

extension TokenBinding {
    /// Sends a string that cannot be an access token: if the endpoint refuses it as such endpoints do, it works.
    func test(_ call: ProviderCall) async throws -> (ProviderTestResult, String) {
        let configuration = call.configuration
        guard let request = try await request(for: Secret("postern-test"), call) else {
            let consequence =
                configuration.provider.acceptUnboundAccessTokens ? "any are accepted" : "they are refused"
            return (.skipped, "nothing tells to which client access tokens were issued: \(consequence)")
        }
        let kind = configuration.known.tokenCheck
        return try await requests.send(request, for: call) { answer in try Self.judge(answer, kind) }
    }

    private static func judge(
        _ answer: HTTPAnswer, _ kind: KnownProvider.TokenCheck
    ) throws(FederationError) -> (ProviderTestResult, String) {
        let passed = (ProviderTestResult.passed, "the endpoint answers and refuses a wrong token")
        let status = answer.status
        let hasObject = (try? JSONValue(parsing: answer.body))?.object != nil
        switch kind {
        case .googleTokenInfo where [400, 401, 403].contains(status): return passed
        // GitHub answers so to a token that it does not know, and 401 to a wrong client.
        case .gitHubApplication where [404, 422].contains(status) && hasObject: return passed
        case .facebookDebug where status == 400: throw .misconfigured(.clientRefused)
        default: break
        }
        if refusesClient(answer) { throw .misconfigured(.clientRefused) }
        if [404, 405, 410].contains(status) { return (.failed, ProviderClient.nothingThere(status)) }
        let object = try ProviderRequests.object(answer)
        switch kind {
        case .introspection:
            guard let active = object["active"] else { throw .unavailable(.badAnswer) }
            if active == false { return passed }
        case .facebookDebug:
            guard let data = object["data"] else { throw .unavailable(.badAnswer) }
            if data["is_valid"] == false { return passed }
        case .none, .googleTokenInfo, .gitHubApplication: break
        }
        return (.failed, "the endpoint takes a token that is none: whoever it names could be anybody")
    }
}
