import Base

/// What an address may hold beyond ASCII. Pure.
///
/// One address must have one spelling, and look like what it is: nothing that NFC would change (RFC 6532 §3.1), nothing
/// invisible, nothing that turns the direction of the text, no blank, and no character without a meaning (yet, or for
/// everybody), because later versions of Unicode may compose it otherwise. Scripts may be mixed: people's names do.
enum InternationalEmail {
    static func isAcceptable(_ text: Text) -> Bool {
        // Text may have been made without a look at its bytes.
        guard let text = String(validating: text.bytes, as: UTF8.self) else { return false }
        return text.unicodeScalars.allSatisfy(isAcceptable) && NFC.composed(text).utf8.elementsEqual(text.utf8)
    }

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

    /// What other software takes for "@" and "." (UTS #46 §2.3, and NFKC): an address must mean the same to all.
    private static let separators: Set<Unicode.Scalar> = [
        "\u{FF20}", "\u{FE6B}", "\u{3002}", "\u{FF0E}", "\u{FF61}", "\u{2024}", "\u{FE52}",
    ]
}
