import Base
import Crypto
import Identity
import Messages
import Service
import TestSupport
import Testing

/// An ID token is verified by PyJWT, which we did not write, from the published JWKS.
@Suite struct ForeignVerifierTests {
    private static let script = """
        import json, sys, jwt
        token, jwks, issuer, audience = open(sys.argv[1]).read(), json.load(open(sys.argv[2])), sys.argv[3], sys.argv[4]
        kid = jwt.get_unverified_header(token)["kid"]
        key = next(k for k in jwks["keys"] if k["kid"] == kid)
        claims = jwt.decode(token, jwt.PyJWK(key).key, algorithms=[key["alg"]], issuer=issuer, audience=audience,
                            options={"verify_iat": False, "verify_exp": False})
        print(claims["sub"])
        """

    @Test(arguments: SigningAlgorithm.allCases)
    func pyJWTAcceptsTheTokenAndRefusesAChangedOne(_ algorithm: SigningAlgorithm) async throws {
        try await withServer(configure: { $0.project.signingAlgorithm = algorithm }) { server in
            let client = try server.connect()
            let made = try client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ann@example.com", password: Secret("secret1")),
                returning: AccountsSignUpResponse.self)
            let keys = try client.call(
                "postern.v1.Tokens/ListKeys", TokensListKeysRequest(), returning: TokensListKeysResponse.self)
            let token = made.tokens?.idToken.bytes ?? []
            #expect(try verify(token, keys.jwksJSON, in: server.directory) == made.user?.uid.string)
            var changed = token
            // A digit in the middle of the payload.
            let middle = token.count / 3
            changed[middle] = changed[middle] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(try verify(changed, keys.jwksJSON, in: server.directory) == nil)
        }
    }

    /// The subject PyJWT finds, or nil when it refuses the token.
    private func verify(_ token: [UInt8], _ jwks: [UInt8], in directory: String) throws -> String? {
        writeFile("\(directory)/token", token)
        writeFile("\(directory)/jwks", jwks)
        writeFile("\(directory)/verify.py", [UInt8](Self.script.utf8))
        let python = try ChildProcess(
            "/usr/bin/python3",
            [
                "\(directory)/verify.py", "\(directory)/token", "\(directory)/jwks", "https://issuer.test/test", "test",
            ], output: "\(directory)/subject")
        let status = python.wait()
        let output = String(decoding: readFile("\(directory)/subject") ?? [], as: UTF8.self)
        if output.contains("ModuleNotFoundError") {
            Issue.record("python3-jwt is missing: run tools/bootstrap --tests")
        }
        return status == 0 ? output.split(separator: "\n").first.map(String.init) : nil
    }
}
