import Base
import Crypto
import Glibc
import JSON
import Messages
import Testing

@testable import PosternBench

@Suite struct LoopbackProviderTests {
    /// The body of what `url` answers.
    private func get(_ url: String) throws -> JSONValue {
        let parts = url.dropFirst("http://".utf8.count).split(separator: "/", maxSplits: 1).map(String.init)
        let descriptor = try ServerAddress(parsing: parts[0]).connect()
        defer { close(descriptor) }
        let request = "GET /\(parts[1]) HTTP/1.1\r\nHost: \(parts[0])\r\n\r\n"
        try #require(send(descriptor, request, request.utf8.count, 0) == request.utf8.count)
        var answer: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4_096)
        while case let count = recv(descriptor, &piece, piece.count, 0), count > 0 { answer += piece[..<count] }
        let text = String(decoding: answer, as: UTF8.self)
        try #require(text.hasPrefix("HTTP/1.1 200 "))
        let body = try #require(text.firstRange(of: "\r\n\r\n")?.upperBound)
        return try JSONValue(parsing: Array(text[body...].utf8))
    }

    @Test func `Its ID tokens verify with the keys its discovery document leads to`() throws {
        let provider = try LoopbackProvider(issuerCount: 2)
        let token = provider.idToken(of: "ada", email: "ada@bench.example", issuer: 1, now: Timestamp(seconds: 1_000))
        let document = try get("\(provider.issuer(1))/.well-known/openid-configuration")
        #expect(document["issuer"]?.text == provider.issuer(1) && provider.issuer(0) != provider.issuer(1))
        let keys = try get(try #require(document["jwks_uri"]?.string))
        let entry = try #require(keys["keys"]?.array?.first)
        let key = try VerificationKey(jwk: try PublicJWK(member: { entry[$0]?.text }))
        let parts = token.withBytes { [UInt8]($0) }.split(separator: UInt8(ascii: ".")).map(Array.init)
        let header = try JSONValue(parsing: try #require(Base64.url.decode(parts[0])))
        #expect(header["kid"] == entry["kid"] && header["alg"] == "RS256")
        let claims = try JSONValue(parsing: try #require(Base64.url.decode(parts[1])))
        #expect(claims["sub"] == "ada" && claims["iss"]?.text == provider.issuer(1))
        #expect(claims["aud"]?.text == provider.configuration(1, providerID: "oidc.bench").clientID)
        let signature = try #require(Base64.url.decode(parts[2]))
        #expect(key.verify(signature: signature, over: parts[0] + [UInt8(ascii: ".")] + parts[1]))
    }
}
