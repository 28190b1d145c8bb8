public import Base
public import Messages

/// The rules for what a caller may put into an authorization request to a provider. Pure.
public enum AuthorizationRules {
    static let scopesMax = 20
    static let scopeByteCountMax = 256
    static let parametersMax = 20
    static let nameByteCountMax = 64
    static let valueByteCountMax = 1_024
    /// The parameters that nobody else may set: the request's own, those that would replace it (RFC 9101) and those for
    /// the way the answer comes.
    static let ownParameters: Set<Text> = [
        "response_type", "response_mode", "client_id", "client_secret", "redirect_uri", "scope", "state", "nonce",
        "code_challenge", "code_challenge_method", "request", "request_uri", "registration",
    ]

    /// MISSING_CONTINUE_URI, INVALID_CONTINUE_URI, INVALID_SCOPE, INVALID_CUSTOM_PARAMETER.
    public static func check(_ request: AccountsCreateAuthUriRequest, limits: Limits) throws(Failure) {
        guard !request.continueURI.isEmpty else {
            throw .invalid(.missingContinueURI, field: "continue_uri", "is required with provider_id")
        }
        try checkRedirect(request.continueURI, limits: limits)
        guard request.scopes.count <= scopesMax, request.scopes.allSatisfy(isScope) else {
            throw .invalid(
                .invalidScope, field: "scopes",
                "must be at most \(scopesMax), each of 1 to \(scopeByteCountMax) printable characters without spaces")
        }
        try checkParameters(request.customParameters)
    }

    /// Checks the same as for a continue URL, but allows an application's own scheme, which has a dot (RFC 8252 §7.1),
    /// and refuses a fragment (RFC 6749 §3.1.2).
    private static func checkRedirect(_ uri: Text, limits: Limits) throws(Failure) {
        let text = uri.bytes
        let scheme = text.prefix { $0 != UInt8(ascii: ":") }
        if !scheme.contains(UInt8(ascii: ".")) || scheme.count == text.count {
            try Values.checkContinueURL(uri, field: "continue_uri", limits: limits)
        }
        let isScheme = scheme.enumerated().allSatisfy { index, byte in
            byte.isASCIILetter || index > 0 && (byte.isASCIIDigit || "+-.".utf8.contains(byte))
        }
        guard isScheme, text.count <= limits.continueURLMax, text.allSatisfy({ (0x21...0x7E).contains($0) }),
            !text.contains(UInt8(ascii: "#"))
        else {
            throw .invalid(
                .invalidContinueURI, field: "continue_uri",
                "must be an https URL or one of an application's own scheme, without a fragment, of at most "
                    + "\(limits.continueURLMax) bytes")
        }
    }

    /// RFC 6749 §3.3.
    private static func isScope(_ scope: Text) -> Bool {
        (1...scopeByteCountMax).contains(scope.byteCount)
            && scope.bytes.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
    }

    private static func checkParameters(_ parameters: [AuthUriParameter]) throws(Failure) {
        func invalid(_ description: String) -> Failure {
            .invalid(.invalidCustomParameter, field: "custom_parameters", description)
        }
        guard parameters.count <= parametersMax else { throw invalid("must be at most \(parametersMax)") }
        var names: Set<Text> = []
        for parameter in parameters {
            guard (1...nameByteCountMax).contains(parameter.name.byteCount),
                parameter.name.bytes.allSatisfy({
                    $0.isASCIILetter || $0.isASCIIDigit || "-._".utf8.contains($0)
                })
            else { throw invalid("have names of 1 to \(nameByteCountMax) characters of [A-Za-z0-9_.-]") }
            guard !ownParameters.contains(parameter.name) else {
                throw invalid("\(parameter.name) is set by the server")
            }
            guard names.insert(parameter.name).inserted else { throw invalid("\(parameter.name) is there twice") }
            guard parameter.value.byteCount <= valueByteCountMax else {
                throw invalid("have values of at most \(valueByteCountMax) bytes")
            }
        }
    }
}
