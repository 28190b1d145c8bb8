import Base

/// The characters beyond ASCII that an address may hold. Pure.
///
/// An address must have only one spelling, and must not look like another. Refused are characters that NFC would change
/// (RFC 6532 §3.1), invisible characters, characters that turn the direction of the text, blanks, and characters
/// without a fixed meaning (unassigned or private), because later versions of Unicode may compose them otherwise.
/// Scripts may be mixed, as they are in people's names.
enum InternationalEmail {
    static func isAcceptable(_ text: Text) -> Bool {
        // A `Text` may have been made without a check of its bytes.
        guard let text = String(validating: text.bytes, as: UTF8.self) else { return false }
        let scalars = text.unicodeScalars
        return scalars.allSatisfy(isAcceptable) && NFC.composed(text).utf8.elementsEqual(text.utf8)
            && scalars.drop { $0 != "@" }.allSatisfy(isAcceptableInDomain)
    }

    /// Refuses characters that the lookup of a domain maps to others (UTS #46 §4): capitals, widths, ligatures.
    /// Otherwise one mailbox would have many addresses, each with its own account and its own share of mails. ASCII
    /// capitals are allowed, because the canonical form maps them as well.
    private static func isAcceptableInDomain(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII || deviations.contains(scalar) || !scalar.properties.changesWhenNFKCCaseFolded
    }

    /// Folded by NFKC, but letters of their own in domains since IDNA 2008 (UTS #46 §2.2).
    private static let deviations: Set<Unicode.Scalar> = ["\u{DF}", "\u{3C2}"]

    private static func isAcceptable(_ scalar: Unicode.Scalar) -> Bool {
        guard !scalar.isASCII else { return true }
        if scalar.properties.isDefaultIgnorableCodePoint || separators.contains(scalar) { return false }
        return switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .spaceSeparator, .lineSeparator,
            .paragraphSeparator:
            false
        default: true
        }
    }

    /// Characters that other software takes for "@" and "." (UTS #46 §2.3, and NFKC): an address must mean the same to
    /// all.
    private static let separators: Set<Unicode.Scalar> = [
        "\u{FF20}", "\u{FE6B}", "\u{3002}", "\u{FF0E}", "\u{FF61}", "\u{2024}", "\u{FE52}",
    ]
}
