public import Base
public import Messages

/// The places where a tenant's links may lead: the entries of `Tenant.allowed_continue_domains`. Pure; compares bytes.
public struct ContinueDomains: Sendable {
    static let entryByteCountMax = 253

    private let entries: [[UInt8]]
    private let allowsLoopback: Bool

    public init(_ tenant: Messages.Tenant) {
        entries = tenant.allowedContinueDomains.map(\.bytes)
        allowsLoopback = tenant.allowLoopbackContinueURL
    }

    // MARK: The list

    /// The entries as they are kept, in lower case. INVALID_CONTINUE_DOMAIN.
    public static func checked(_ entries: [Text], limits: Limits) throws(Failure) -> [Text] {
        guard entries.count <= limits.continueDomainsMax else {
            throw .invalid(
                .invalidContinueDomain, field: "allowed_continue_domains",
                "must be at most \(limits.continueDomainsMax)")
        }
        var kept: [Text] = []
        for entry in entries {
            let bytes = entry.bytes.lowercasedASCII
            guard bytes.count <= entryByteCountMax, isEntry(bytes) else {
                throw .invalid(
                    .invalidContinueDomain, field: "allowed_continue_domains",
                    "must be hosts such as app.example, app.example:8443 or *.app.example, or schemes such as "
                        + "com.example.app:, of at most \(entryByteCountMax) bytes")
            }
            kept.append(Text(unchecked: bytes))
        }
        return kept
    }

    private static func isEntry(_ entry: [UInt8]) -> Bool {
        if entry.last == UInt8(ascii: ":") { return isOwnScheme(entry.dropLast()) }
        guard let authority = Authority(entry.starts(with: "*.".utf8) ? Array(entry.dropFirst(2)) : entry) else {
            return false
        }
        // "*.example" would be a whole top-level domain.
        return entry.first != UInt8(ascii: "*") || authority.host.contains(UInt8(ascii: "."))
    }

    /// An application's own scheme has a dot (RFC 8252 §7.1).
    private static func isOwnScheme(_ scheme: ArraySlice<UInt8>) -> Bool {
        scheme.contains(UInt8(ascii: ".")) && Authority(Array(scheme))?.port == .some(nil)
    }

    // MARK: Judging a URL

    /// Whether a link may lead to a URL of good form. `actionPage` is the page that the tenant's links lead to first.
    public func allow(_ url: Text, actionPage: Text) -> Bool {
        guard let target = Target(url.bytes) else { return false }
        switch target {
        case .ownScheme(let scheme): return entries.contains(scheme)
        case .web(let authority):
            if authority.isOfThisMachine, allowsLoopback { return true }
            return Target(actionPage.bytes) == target || entries.contains { Self.matches(authority, $0) }
        }
    }

    private static func matches(_ authority: Authority, _ entry: [UInt8]) -> Bool {
        let isSuffix = entry.starts(with: "*.".utf8)
        guard let listed = Authority(isSuffix ? Array(entry.dropFirst(2)) : entry) else { return false }
        guard authority.port ?? 443 == listed.port ?? 443 else { return false }
        guard isSuffix else { return authority.host == listed.host }
        let suffix = [UInt8(ascii: ".")] + listed.host
        return authority.host.count > suffix.count && authority.host.suffix(suffix.count).elementsEqual(suffix)
    }

    private enum Target: Equatable {
        case web(Authority)
        /// The scheme with its colon.
        case ownScheme([UInt8])

        init?(_ url: [UInt8]) {
            // Browsers take a backslash for a slash; other parsers do not.
            guard !url.contains(UInt8(ascii: "\\")), let colon = url.firstIndex(of: UInt8(ascii: ":")) else {
                return nil
            }
            let scheme = url[..<colon].lowercasedASCII
            guard scheme.elementsEqual("https".utf8) || scheme.elementsEqual("http".utf8) else {
                self = .ownScheme(scheme + [UInt8(ascii: ":")])
                return
            }
            let rest = url[(colon + 1)...]
            guard rest.starts(with: "//".utf8) else { return nil }
            let text = rest.dropFirst(2).prefix { !"/?#".utf8.contains($0) }
            guard let authority = Authority(text.lowercasedASCII) else { return nil }
            // Without TLS only this machine is allowed, where the port does not matter.
            guard scheme.count == 5 || authority.isOfThisMachine else { return nil }
            self = .web(authority)
        }
    }

    /// A host and perhaps a port: a name of letters, digits and hyphens, an IPv4 address, or `[::1]`. No user
    /// information, no trailing dot, nothing beyond ASCII.
    private struct Authority: Equatable {
        let host: [UInt8]
        let port: Int?

        /// `text` is in lower case.
        init?(_ text: [UInt8]) {
            let isLoopbackV6 = text.starts(with: "[::1]".utf8)
            let end = isLoopbackV6 ? 5 : text.firstIndex(of: UInt8(ascii: ":")) ?? text.count
            host = Array(text[..<end])
            guard isLoopbackV6 || Self.isName(host) else { return nil }
            guard end < text.count else {
                port = nil
                return
            }
            let digits = text[(end + 1)...]
            guard text[end] == UInt8(ascii: ":"), (1...5).contains(digits.count),
                digits.allSatisfy(\.isASCIIDigit)
            else { return nil }
            let number = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            guard (1...65_535).contains(number) else { return nil }
            port = number
        }

        var isOfThisMachine: Bool {
            ["localhost", "127.0.0.1", "[::1]"].contains { host.elementsEqual($0.utf8) }
        }

        private static func isName(_ host: [UInt8]) -> Bool {
            guard (1...253).contains(host.count) else { return false }
            return host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
                (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
                    && label.allSatisfy(\.isLowercaseLDH)
            }
        }
    }
}
