import Base
import JSON
import Outbound

/// The parts of a token endpoint's answer that are used (RFC 6749 §5). The thread that read the answer makes it: the
/// provider chooses how long the parsing of its answer takes, and an event loop must not wait for that.
struct TokenAnswer: Sendable {
    enum Refusal: Sendable, Equatable {
        /// The endpoint refuses the client's own credentials: RFC 6749 §5.2, and GitHub's own error for it.
        case client
        /// Any other error.
        case other
    }

    struct Tokens: Sendable {
        var idToken: Secret?
        var accessToken: Secret?
    }

    let status: Int
    let isSuccess: Bool
    /// Whether the body is a JSON object.
    let isObject: Bool
    /// The error that the body names, whatever the status: GitHub answers 200 to a bad code.
    let refusal: Refusal?
    let tokens: Tokens

    private static let clientErrors: [JSONValue] = [
        "invalid_client", "unauthorized_client", "incorrect_client_credentials",
    ]

    /// Whether the body names an error of the client's own credentials.
    static func refusesClient(_ body: JSONValue) -> Bool { body["error"].map(clientErrors.contains) ?? false }

    /// Parses the body once. MALFORMED if the ID token is longer than `tokenByteCountMax`. An access token that is
    /// longer is left out, because it may come with an ID token, and then it is not used.
    init(_ answer: HTTPAnswer, tokenByteCountMax: Int) throws(FederationError) {
        let body = try? JSONValue(parsing: answer.body)
        let idToken = body?["id_token"]?.text
        let accessToken = body?["access_token"]?.text
        if let idToken, idToken.byteCount > tokenByteCountMax { throw .flawed(.malformed) }
        (self.status, self.isSuccess) = (answer.status, answer.isSuccess)
        self.isObject = body?.object != nil
        self.refusal = body?["error"].map { Self.clientErrors.contains($0) ? Refusal.client : Refusal.other }
        self.tokens = Tokens(
            idToken: idToken.map { Secret($0.bytes) },
            accessToken: accessToken.flatMap { $0.byteCount <= tokenByteCountMax ? Secret($0.bytes) : nil })
    }
}
