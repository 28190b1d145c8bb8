import Base
import Crypto
import JSON
import Messages
import Reactor
import Synchronization
import Transport

/// The tool's own OpenID Connect provider on 127.0.0.1: discovery documents, one key set, and ID tokens for any user.
///
/// It has several issuers, `http://127.0.0.1:<port>/<number>`, so that a server cannot share cached data among them. It
/// answers until it is dropped. Made and dropped by one thread; RS256.
final class LoopbackProvider {
    static let clientID: Text = "postern-bench"
    private static let lifetime = Duration.days(2)

    private let loop: EventLoop
    private let server: HTTPServer
    private let key: SigningKey
    private let header: [UInt8]

    init(issuerCount: Int) throws(BenchError) {
        let key = SigningKey.generate(.rs256)
        let loop = EventLoop(name: "provider")
        // The system chooses the port when the routes are given already.
        let address = BoundAddress()
        let keys = Self.keySet(of: key)
        var routes: HTTPServer.Routes = [:]
        for number in 0..<issuerCount {
            routes[Text("/\(number)/.well-known/openid-configuration")] = {
                let issuer = address.issuer(number)
                let document: JSONValue = [
                    "issuer": .string(issuer), "jwks_uri": .string(Text("\(issuer)/keys")),
                    "token_endpoint": .string(Text("\(issuer)/token")),
                ]
                return Self.answer(document)
            }
            routes[Text("/\(number)/keys")] = { Self.answer(keys) }
        }
        var limits = Limits()
        // All requests come from one address here.
        limits.httpConnectionsPerAddressMax = limits.httpConnectionsMax
        do {
            server = try HTTPServer(on: loop, at: .loopback(), routes: routes, limits: limits)
        } catch {
            throw BenchError(.notReady, "\(error)")
        }
        address.port.store(server.port, ordering: .releasing)
        self.key = key
        self.loop = loop
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("alg", text: "RS256")
        writer.member("kid", text: key.publicKey.keyID)
        writer.member("typ", text: "JWT")
        writer.endObject()
        header = Base64.url.encode(writer.bytes)
        loop.start()
    }

    deinit {
        loop.stop()
        loop.join()
        server.close()
    }

    func issuer(_ number: Int) -> Text { Text("http://127.0.0.1:\(server.port)/\(number)") }

    /// The configuration of one issuer for a tenant. Only this machine can reach the issuer: a project-admin must allow
    /// it.
    func configuration(_ number: Int, providerID: Text) -> Provider {
        var provider = Provider()
        provider.providerID = providerID
        provider.clientID = Self.clientID
        provider.issuer = issuer(number)
        provider.allowHTTPLoopback = true
        return provider
    }

    /// An ID token with about as many claims as Google's have.
    func idToken(of subject: Text, email: Text, issuer number: Int, now: Timestamp) -> Secret {
        var claims = JSONWriter()
        claims.beginObject()
        claims.member("iss", text: issuer(number))
        claims.member("aud", text: Self.clientID)
        claims.member("azp", text: Self.clientID)
        claims.member("sub", text: subject)
        claims.member("email", text: email)
        claims.member("email_verified", bool: true)
        claims.member("name", text: "Bench User")
        claims.member("picture", text: "https://photos.bench.example/users/portrait.jpg")
        claims.member("iat", integer: now.seconds)
        claims.member("exp", integer: (now + Self.lifetime).seconds)
        claims.endObject()
        let signed = header + [UInt8(ascii: ".")] + Base64.url.encode(claims.bytes)
        return Secret(signed + [UInt8(ascii: ".")] + Base64.url.encode(key.sign(signed)))
    }

    private static func keySet(of key: SigningKey) -> JSONValue {
        var members = key.publicKey.jwk.members.map { JSONValue.Member(Text("\($0.name)"), .string($0.value)) }
        members.append(.init("kid", .string(key.publicKey.keyID)))
        members.append(.init("use", "sig"))
        return ["keys": [.object(members)]]
    }

    private static func answer(_ json: JSONValue) -> HTTPResponse {
        HTTPResponse(
            contentType: "application/json", fields: [("Cache-Control", "max-age=3600")], body: json.serialized())
    }
}

/// The port of the server. The server is made after its routes, so the port is known only then.
private final class BoundAddress: Sendable {
    let port = Atomic<UInt16>(0)

    func issuer(_ number: Int) -> Text { Text("http://127.0.0.1:\(port.load(ordering: .acquiring))/\(number)") }
}
