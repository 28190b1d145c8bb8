import Base
import JSON
import Outbound
import Testing

@testable import Federation

/// What is kept of a discovery document, which the cache holds for a day.
@Suite struct DiscoveryDocumentTests {
    private static let endpoints: [Text] = [
        "jwks_uri", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "introspection_endpoint",
    ]

    private func url(byteCount: Int) -> Text {
        let start = "https://id.example/"
        return Text(start + String(repeating: "a", count: byteCount - start.utf8.count))
    }

    private func document(issuer: Text, endpoint: Text) -> DiscoveryDocument? {
        let members = Self.endpoints.map { JSONValue.Member($0, .string(endpoint)) }
        return DiscoveryDocument(
            parsing: JSONValue.object([JSONValue.Member("issuer", .string(issuer))] + members).serialized())
    }

    @Test func `URLs as long as a URL may be are kept`() throws {
        let longest = url(byteCount: HTTPURL.byteCountMax)
        let kept = try #require(document(issuer: longest, endpoint: longest))
        #expect(kept.issuer == longest && kept.jwksURL?.text == longest && kept.namesKeys)
        let others = [kept.authorization, kept.token, kept.userInfo, kept.introspection]
        #expect(others == [Text](repeating: longest, count: 4))
    }

    @Test func `Longer URLs are not kept, and a longer issuer is refused`() throws {
        let tooLong = url(byteCount: HTTPURL.byteCountMax + 1)
        let kept = try #require(document(issuer: "https://id.example", endpoint: tooLong))
        #expect(kept.jwksURL == nil && kept.namesKeys)
        let others = [kept.authorization, kept.token, kept.userInfo, kept.introspection]
        #expect(others == [Text](repeating: .empty, count: 4))
        #expect(document(issuer: tooLong, endpoint: "https://id.example/") == nil)
    }
}
