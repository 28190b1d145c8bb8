import Base
import JSON
import Messages
import TestSupport
import Testing

/// A custom token made by PyJWT, which we did not write, from our key file as it is, with the claims that
/// firebase_admin writes (firebase_admin/_token_gen.py, create_custom_token).
@Suite struct ForeignCustomTokenTests {
    private static let script = """
        import json, sys, jwt
        account, now, tenant, named = json.load(open(sys.argv[1])), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "kid"
        assert account["type"] == "service_account" and account["token_uri"] and account["project_id"] == "test"
        payload = {
            "iss": account["client_email"],
            "sub": account["client_email"],
            "aud": "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit",
            "uid": "some-user",
            "iat": now,
            "exp": now + 3600,
            "claims": {"premium": True, "nested": {"list": [1, 2.5, "caf\\u00e9"]}},
        }
        if tenant:
            payload["tenant_id"] = tenant
        headers = {"kid": account["private_key_id"]} if named else {}
        print(jwt.encode(payload, account["private_key"], algorithm=sys.argv[5], headers=headers))
        """

    @Test(arguments: ["RS256", "ES256"], ["kid", "no kid"])
    func aTokenAsAdminSDKsWriteItSignsIn(algorithm: String, kid: String) async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, algorithm: Text(algorithm))
            try backEnd.makeTenant("acme")
            for tenantID in ["", "acme"] {
                let token = try foreignToken(backEnd, tenantID, kid, algorithm)
                let signedIn = try backEnd.signIn(token, tenantID: Text(tenantID))
                #expect(signedIn.isNewUser && signedIn.user?.uid == "some-user")
                let idToken = claims(of: signedIn.tokens?.idToken ?? .empty)
                #expect(idToken["premium"] == true)
                #expect(idToken["nested"]?["list"] == [1, .double(2.5), "café"])
            }
        }
    }

    private func foreignToken(
        _ backEnd: BackEnd, _ tenantID: String, _ kid: String, _ algorithm: String
    ) throws -> Text {
        let directory = backEnd.server.directory
        writeFile("\(directory)/key.json", backEnd.keyFile.serialized())
        writeFile("\(directory)/sign.py", [UInt8](Self.script.utf8))
        let python = try ChildProcess(
            "/usr/bin/python3",
            ["\(directory)/sign.py", "\(directory)/key.json", "\(backEnd.now)", tenantID, kid, algorithm],
            output: "\(directory)/token")
        let status = python.wait()
        let output = String(decoding: readFile("\(directory)/token") ?? [], as: UTF8.self)
        if output.contains("ModuleNotFoundError") {
            Issue.record("python3-jwt is missing: run tools/bootstrap --tests")
        }
        #expect(status == 0, "\(output)")
        return Text(output.split(separator: "\n").first.map(String.init) ?? "")
    }
}
