import Base
import Messages
import Outbound
import Rules

/// Exchanges an authorization code for the provider's tokens (RFC 6749 §4.1.3, RFC 7636), as the confidential client
/// of the configuration.
struct CodeExchange: Sendable {
    let requests: ProviderRequests
    let metadata: ProviderMetadata
    let tokenByteCountMax: Int

    static let redirectURIByteCountMax = 2_048
    /// Room for two tokens of the largest size, and as much besides.
    static let answerByteCountMax = 64 * 1024
    /// RFC 7636 §4.1: 43 to 128 unreserved characters.
    private static let verifierByteCountRange = 43...128

    func exchange(
        _ code: Secret, redirectURI: Text, verifier: Secret, _ call: ProviderCall
    ) async throws -> TokenAnswer.Tokens {
        guard redirectURI.byteCount <= Self.redirectURIByteCountMax, Self.isVerifier(verifier) else {
            throw FederationError.rejected
        }
        let answer = try await ask(code, redirectURI: redirectURI, verifier: verifier, call)
        if answer.status == 401 || answer.refusal == .client { throw FederationError.misconfigured(.clientRefused) }
        if (400...499).contains(answer.status) && answer.status != 429 { throw FederationError.rejected }
        guard answer.isSuccess, answer.isObject else { throw FederationError.unavailable(.badAnswer) }
        if answer.refusal != nil { throw FederationError.rejected }
        let tokens = answer.tokens
        guard tokens.idToken != nil || tokens.accessToken != nil else { throw FederationError.unavailable(.badAnswer) }
        return tokens
    }

    /// The token endpoint's answer, whatever its status. OVERLOADED if the tenant's processor time is spent.
    func ask(
        _ code: Secret, redirectURI: Text, verifier: Secret, _ call: ProviderCall
    ) async throws -> TokenAnswer {
        let configuration = call.configuration
        let (url, authentication) = try await endpoint(for: call)
        var members: [(name: Text, value: Secret)] = [("grant_type", Secret("authorization_code")), ("code", code)]
        if !redirectURI.isEmpty { members.append(("redirect_uri", Secret(redirectURI.bytes))) }
        if !verifier.isEmpty { members.append(("code_verifier", verifier)) }
        let secret = try AppleClientSecret.make(configuration, now: call.now) ?? configuration.clientSecret
        var request = ProviderRequests.form(url, members, from: configuration, secret, by: authentication)
        request.bodyByteCountMax = Self.answerByteCountMax
        return try await requests.send(request, for: call) { [tokenByteCountMax] answer in
            try TokenAnswer(answer, tokenByteCountMax: tokenByteCountMax)
        }
    }

    private func endpoint(for call: ProviderCall) async throws -> (HTTPURL, KnownProvider.ClientAuthentication) {
        let configuration = call.configuration
        var location = configuration.endpoints.token
        if location.isEmpty { location = try await metadata.document(of: configuration, now: call.now).token }
        guard !location.isEmpty else { throw FederationError.misconfigured(.noTokenEndpoint) }
        let authentication = try await metadata.clientAuthentication(of: configuration, now: call.now) {
            $0.acceptsPostedSecrets
        }
        return (try configuration.url(location), authentication)
    }

    private static func isVerifier(_ verifier: Secret) -> Bool {
        guard !verifier.isEmpty else { return true }
        return verifier.withBytes { bytes in
            verifierByteCountRange.contains(bytes.count)
                && PercentEncoding.encode([UInt8](bytes)).count == bytes.count
        }
    }
}
