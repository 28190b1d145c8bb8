// A service with an endpoint for signed-in users: `GET /hello` with `Authorization: Bearer <ID token>`.
//
//   ExampleService SERVER KEY-FILE PORT [TENANT]
//
// The key needs the role verifier. Without TENANT, tokens of the key's tenant are accepted; if the key is for all
// tenants, those of the default pool. Tokens are verified in this process, without a call per request. A revoked token
// is refused here milliseconds later.

import Base
import Glibc
import PosternClient
import PosternVerifier

let arguments = CommandLine.arguments
guard arguments.count >= 4, let port = UInt16(arguments[3]), let key = readKey(arguments[2]) else {
    print("usage: ExampleService SERVER KEY-FILE PORT [TENANT]")
    exit(1)
}

do {
    let channel = try Channel(address: arguments[1], credentials: .apiKey(key))
    var options = VerifierOptions()
    options.tenants = .one(arguments.count > 4 ? Text(arguments[4]) : "")
    let verifier = try await TokenVerifier(channel: channel, options: options)
    let server = try HTTPListener(port: port)
    print("serving http://127.0.0.1:\(port)/hello")
    while true {
        server.answerNext { request in answer(request, verifier) }
    }
} catch {
    print("ExampleService: \(error)")
    exit(1)
}

/// Answers a request. Nothing in the request is trusted before `verifyNow` returns.
func answer(_ request: HTTPListener.Request, _ verifier: TokenVerifier) -> HTTPListener.Response {
    guard request.path == "/hello" else { return .init(404, "there is /hello\n") }
    guard let header = request.authorization, header.hasPrefix("Bearer ") else {
        return .init(401, "sign in first\n")
    }
    do throws(Failure) {
        let user = try verifier.verifyNow(String(header.dropFirst("Bearer ".count)))
        return .init(200, "hello \(user.uid), signed in with \(user.signInProvider)\n")
    } catch {
        // VERIFIER_STALE: this service does not know the latest revocations, and says so rather than guess.
        return .init(error.code == .unavailable ? 503 : 401, "\(error.reason)\n")
    }
}

func readKey(_ path: String) -> Secret? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 512)
    let count = fread(&bytes, 1, bytes.count, file)
    return Secret(bytes[..<count].filter { $0 > UInt8(ascii: " ") })
}
