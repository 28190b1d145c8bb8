import Base
import Crypto
import Identity
import Messages
import Service
import TestSupport
import Testing

/// The verifier of the Python package in tools/python over tokens of a real server. `tools/check` runs the package's
/// own tests.
@Suite struct PythonPackageTests {
    private static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")

    /// A copy of the package with stubs made for this machine's protobuf.
    private static func package(in directory: String) throws -> String {
        let folder = "\(directory)/package"
        let script =
            "cp -r \"$0\"/tools/python \"$1\" && rm -rf \"$1\"/postern/v1 "
            + "&& /usr/bin/python3 \"$1\"/make_stubs.py \"$0\"/proto/public"
        let output = "\(directory)/stubs"
        let made = try ChildProcess("sh", ["-c", script, root, folder], output: output)
        #expect(made.wait() == 0, "\(ChildProcess.lines(in: output))")
        return folder
    }

    /// Runs Python in a copy of the package; returns what it said.
    private static func python(_ arguments: [String], in folder: String) throws -> (status: Int32?, said: [String]) {
        let output = "\(folder)/output"
        let process = try ChildProcess(
            "sh", ["-c", "cd \"$0\" && exec /usr/bin/python3 \"$@\"", folder] + arguments, output: output)
        let status = process.wait(seconds: 120)
        let said = ChildProcess.lines(in: output)
        if said.contains(where: { $0.contains("ModuleNotFoundError") }) {
            Issue.record("python3-grpcio or python3-cryptography is missing: run tools/bootstrap --tests")
        }
        return (status, said)
    }

    private static let verify = """
        import sys, postern
        token, jwks, now = open(sys.argv[1]).read(), open(sys.argv[2], "rb").read(), float(sys.argv[3])
        verifier = postern.OfflineVerifier(postern.KeySet(jwks), "https://issuer.test/test", "test", tenants="")
        decoded = verifier.verify(token, now)
        print(decoded.uid, decoded.sign_in_provider, decoded.session_id)
        verifier.tenants = "acme"
        try: verifier.verify(token, now)
        except postern.PosternError as error: print(error.reason)
        try: verifier.verify(token, now + 3600)
        except postern.PosternError as error: print(error.reason)
        """

    @Test(arguments: SigningAlgorithm.allCases)
    func `Tokens of a server are verified with its published keys`(algorithm: SigningAlgorithm) async throws {
        try await withServer(configure: { $0.project.signingAlgorithm = algorithm }) { server in
            let client = try server.connect()
            let made = try client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ada@example.com", password: Secret("correct horse")),
                returning: AccountsSignUpResponse.self)
            let keys = try client.call(
                "postern.v1.Tokens/ListKeys", TokensListKeysRequest(), returning: TokensListKeysResponse.self)
            let folder = try Self.package(in: server.directory)
            writeFile("\(folder)/token", made.tokens?.idToken.bytes ?? [])
            writeFile("\(folder)/jwks", keys.jwksJSON)
            let now = server.project.clock.now().microseconds / 1_000_000
            let (status, said) = try Self.python(["-c", Self.verify, "token", "jwks", "\(now)"], in: folder)
            #expect(status == 0, "\(said)")
            #expect(said.first?.hasPrefix("\(made.user?.uid ?? .empty) password ") == true)
            #expect(said.dropFirst() == ["TENANT_ID_MISMATCH", "TOKEN_EXPIRED"])
        }
    }
}
