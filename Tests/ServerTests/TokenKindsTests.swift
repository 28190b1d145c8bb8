import Base
import JSON
import Messages
import TestSupport
import Testing

/// Every kind of JWT against every verifier: each accepts its own kind and no other (RFC 8725 §3.12).
@Suite struct TokenKindsTests {
    /// What is signed, the last ones by a service account that would like to be more than it is.
    enum Kind: CaseIterable {
        case idToken, customToken, callerJWT
        case idTokenOfServiceAccount, idTokenOfServiceAccountUnderTheProjectsKey, callerJWTSayingCustomToken
        case customTokenSayingIDToken

        /// Who accepts it.
        var verifier: Verifier? {
            switch self {
            case .idToken: .idTokens
            case .customToken: .customTokens
            case .callerJWT: .callers
            default: nil
            }
        }

        func make(_ backEnd: BackEnd, genuine idToken: Text) -> Text {
            let idClaims = claims(of: idToken)
            switch self {
            case .idToken: return idToken
            case .customToken: return backEnd.token()
            case .callerJWT: return backEnd.callerToken()
            case .idTokenOfServiceAccount: return backEnd.token(idClaims)
            case .idTokenOfServiceAccountUnderTheProjectsKey:
                let header = String(decoding: idToken.bytes.prefix { $0 != UInt8(ascii: ".") }, as: UTF8.self)
                return backEnd.token(header: Base64.url.decode(header.utf8) ?? [], idClaims.serialized())
            case .callerJWTSayingCustomToken: return backEnd.token(header: backEnd.header, backEnd.callerClaims)
            case .customTokenSayingIDToken:
                // All claims of both at once.
                let both = (idClaims.object ?? []).filter { backEnd.claims[$0.name] == nil }
                return backEnd.token(header: backEnd.callerHeader, .object((backEnd.claims.object ?? []) + both))
            }
        }
    }

    enum Verifier: CaseIterable {
        case idTokens, customTokens, callers

        func accepts(_ token: Text, _ backEnd: BackEnd) throws -> Bool {
            let refused: Failure
            switch self {
            case .idTokens:
                refused = failure {
                    let _: TokensVerifyIdTokenResponse = try backEnd.client.call(
                        "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: token))
                }
                #expect(["", "INVALID_ID_TOKEN"].contains(refused.reason))
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
            }
            return refused.code == .ok
        }
    }

    @Test(arguments: Kind.allCases, Verifier.allCases)
    func aVerifierAcceptsItsKindOnly(_ kind: Kind, _ verifier: Verifier) async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .projectAdmin)
            let genuine = try backEnd.signIn(backEnd.token()).tokens?.idToken ?? .empty
            let token = kind.make(backEnd, genuine: genuine)
            #expect(try verifier.accepts(token, backEnd) == (kind.verifier == verifier))
        }
    }
}
