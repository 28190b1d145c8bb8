import Base
import JSON
import Messages
import TestSupport
import Testing

/// Every kind of token against every verifier: each accepts its own kind and no other (RFC 8725 §3.12).
@Suite struct TokenKindsTests {
    /// Signed or sealed tokens: first the genuine ones, then those of a signer who would like to be more than it is.
    enum Kind: CaseIterable {
        case idToken, sessionCookie, customToken, callerJWT, providerIDToken, refreshToken, pendingToken, apiKey
        case idTokenOfServiceAccount, idTokenOfServiceAccountUnderTheProjectsKey, callerJWTSayingCustomToken
        case customTokenSayingIDToken
        case idTokenOfProvider, customTokenOfProvider, callerJWTOfProvider, providerIDTokenOfServiceAccount
        case sessionCookieOfServiceAccount, sessionCookieOfProvider

        /// The verifier that accepts the token, if any.
        var verifier: Verifier? {
            switch self {
            case .idToken: .idTokens
            case .sessionCookie: .sessionCookies
            case .customToken: .customTokens
            case .callerJWT, .apiKey: .callers
            case .providerIDToken: .providers
            case .refreshToken: .refreshTokens
            case .pendingToken: .pendingTokens
            default: nil
            }
        }

        func make(_ backEnd: BackEnd, _ provider: FakeIdentityProvider, genuine: TokenPair) throws -> Text {
            let idClaims = claims(of: genuine.idToken)
            func text(_ secret: Secret) -> Text { Text(unchecked: secret.withBytes { [UInt8]($0) }) }
            switch self {
            case .idToken: return genuine.idToken
            case .sessionCookie: return try Self.cookie(backEnd, genuine)
            case .customToken: return backEnd.token()
            case .callerJWT: return backEnd.callerToken()
            case .providerIDToken: return text(provider.idToken(.init("ada")))
            case .refreshToken: return genuine.refreshToken
            case .pendingToken: return try IdentityClient(backEnd.server).pendingToken(.google())
            case .apiKey: return text(backEnd.server.adminKey)
            case .idTokenOfServiceAccount: return backEnd.token(idClaims)
            case .idTokenOfServiceAccountUnderTheProjectsKey:
                let header = genuine.idToken.bytes.prefix { $0 != UInt8(ascii: ".") }
                return backEnd.token(header: Base64.url.decode(header) ?? [], idClaims.serialized())
            case .callerJWTSayingCustomToken: return backEnd.token(header: backEnd.header, backEnd.callerClaims)
            case .customTokenSayingIDToken:
                // The token has all claims of both kinds at once.
                let both = (idClaims.object ?? []).filter { backEnd.claims[$0.name] == nil }
                return backEnd.token(header: backEnd.callerHeader, .object((backEnd.claims.object ?? []) + both))
            case .idTokenOfProvider: return text(provider.sign(idClaims))
            case .customTokenOfProvider: return text(provider.sign(backEnd.claims))
            case .callerJWTOfProvider:
                return text(provider.sign(backEnd.callerClaims, header: [("typ", "postern-caller+jwt")]))
            case .providerIDTokenOfServiceAccount: return backEnd.token(provider.claims(.init("ada")))
            case .sessionCookieOfServiceAccount: return backEnd.token(claims(of: try Self.cookie(backEnd, genuine)))
            case .sessionCookieOfProvider:
                return text(provider.sign(claims(of: try Self.cookie(backEnd, genuine))))
            }
        }

        private static func cookie(_ backEnd: BackEnd, _ genuine: TokenPair) throws -> Text {
            let made: TokensCreateSessionCookieResponse = try backEnd.client.call(
                "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: genuine.idToken))
            return made.sessionCookie
        }
    }

    enum Verifier: CaseIterable {
        case idTokens, sessionCookies, customTokens, callers, providers, refreshTokens, pendingTokens

        func accepts(_ token: Text, _ backEnd: BackEnd) throws -> Bool {
            let refused: Failure
            switch self {
            case .idTokens:
                refused = failure {
                    let _: TokensVerifyIdTokenResponse = try backEnd.client.call(
                        "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: token))
                }
                #expect(["", "INVALID_ID_TOKEN"].contains(refused.reason))
            case .sessionCookies:
                refused = failure {
                    let _: TokensVerifySessionCookieResponse = try backEnd.client.call(
                        "postern.v1.Tokens/VerifySessionCookie", TokensVerifySessionCookieRequest(sessionCookie: token))
                }
                #expect(["", "INVALID_SESSION_COOKIE"].contains(refused.reason))
            case .customTokens:
                refused = backEnd.refusal(token)
                #expect(["", "INVALID_CUSTOM_TOKEN", "CREDENTIAL_MISMATCH"].contains(refused.reason))
            case .callers:
                let client = try backEnd.connect(token)
                refused = failure {
                    let _: ProjectServerInfoResponse = try client.call(
                        "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
                }
                #expect(["", "CALLER_UNAUTHENTICATED"].contains(refused.reason))
            case .providers:
                refused = refusal(backEnd, .providerIDToken(Secret(token.bytes)))
                #expect(["", "INVALID_IDP_RESPONSE"].contains(refused.reason))
            case .refreshTokens:
                refused = failure {
                    let _: TokensRefreshResponse = try backEnd.client.call(
                        "postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: token))
                }
                #expect(["", "INVALID_REFRESH_TOKEN"].contains(refused.reason))
            case .pendingTokens:
                refused = refusal(backEnd, .pendingToken(Secret(token.bytes)))
                #expect(["", "INVALID_PENDING_TOKEN"].contains(refused.reason))
            }
            return refused.code == .ok
        }

        private func refusal(_ backEnd: BackEnd, _ credential: IdpCredential.Credential) -> Failure {
            failure {
                let _: AccountsSignInWithIdpResponse = try backEnd.client.call(
                    "postern.v1.Accounts/SignInWithIdp",
                    AccountsSignInWithIdpRequest(
                        credential: IdpCredential(providerID: "oidc.corp", credential: credential)))
            }
        }
    }

    @Test(arguments: Kind.allCases)
    func aVerifierAcceptsItsKindOnly(_ kind: Kind) async throws {
        try await withServer { server in
            let provider = FakeIdentityProvider(clock: server.clock.clock)
            defer { provider.close() }
            let backEnd = try BackEnd(server, role: .projectAdmin)
            let _: ProvidersCreateResponse = try backEnd.client.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider.provider("oidc.corp")))
            let genuine = try #require(try backEnd.signIn(backEnd.token()).tokens)
            let token = try kind.make(backEnd, provider, genuine: genuine)
            for verifier in Verifier.allCases {
                #expect(try verifier.accepts(token, backEnd) == (kind.verifier == verifier), "\(verifier)")
            }
        }
    }
}
