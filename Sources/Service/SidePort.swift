import Base
import Crypto
import Identity
import JSON
import Reactor
import Signing
import Tokens
import Transport

/// The pages of the HTTP side port, which the RPC port serves over HTTP/2 as well: health for load balancers, metrics,
/// and the keys for verifiers.
extension Instance {
    static let metricsPath: Text = "/metrics"

    func makeSidePortRoutes() -> HTTPServer.Routes {
        let health = health
        let keys = project.signingKeys
        let discovery = discoveryDocument()
        let pulse = LoopPulse(loops.loops)
        return [
            "/livez": {
                pulse.isBeating
                    ? HTTPResponse(body: [UInt8]("LIVE\n".utf8))
                    : HTTPResponse(status: 503, body: [UInt8]("STUCK\n".utf8))
            },
            "/readyz": {
                health.isServing
                    ? HTTPResponse(body: [UInt8]("READY\n".utf8))
                    : HTTPResponse(status: 503, body: [UInt8]("NOT_READY\n".utf8))
            },
            "/healthz": {
                guard health.isServing else {
                    return HTTPResponse(status: 503, body: [UInt8]("NOT_SERVING\n".utf8))
                }
                // The status is 200 all the same: another node over the same disk would do no better, and reads are
                // answered.
                guard let trouble = health.trouble else { return HTTPResponse(body: [UInt8]("SERVING\n".utf8)) }
                return HTTPResponse(body: [UInt8]("DEGRADED: \(trouble)\n".utf8))
            },
            // Weak: the router, which the instance owns, has these routes too.
            Self.metricsPath: { [weak self] in
                guard let self else { return HTTPResponse(status: 503, body: []) }
                return HTTPResponse(contentType: "text/plain; version=0.0.4; charset=utf-8", body: prometheusText())
            },
            "/.well-known/jwks.json": { Self.jwkSet(keys.idTokens.published.current.jwks) },
            "/.well-known/session-cookie-jwks.json": { Self.jwkSet(keys.sessionCookies.published.current.jwks) },
            "/.well-known/openid-configuration": { HTTPResponse(contentType: "application/json", body: discovery) },
        ]
    }

    private static func jwkSet(_ body: [UInt8]) -> HTTPResponse {
        HTTPResponse(
            contentType: "application/json", fields: [("Cache-Control", "public, max-age=300")], body: body)
    }

    /// The document of OpenID Connect Discovery 1.0 §3, as far as it says how to verify our tokens.
    private func discoveryDocument() -> [UInt8] {
        let issuer = project.configuration.issuer
        let document: JSONValue = .object([
            .init("issuer", .string(issuer)),
            .init("jwks_uri", .string(Text(issuer.string + "/.well-known/jwks.json"))),
            .init("response_types_supported", .array([.string("id_token")])),
            .init("subject_types_supported", .array([.string("public")])),
            .init(
                "id_token_signing_alg_values_supported",
                .array(SigningAlgorithm.allCases.map { .string(Text($0.rawValue)) })),
        ])
        return document.serialized()
    }
}
