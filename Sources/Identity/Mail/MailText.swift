import Base
import Messages

/// The words of a mail, in plain text and HTML. Pure.
struct MailText {
    let subject: Text
    let text: Text
    let html: Text

    /// What the placeholders of a mail stand for.
    struct Values {
        /// The tenant's display name.
        var appName: Text
        var email: Text
        var newEmail: Text
        var displayName: Text
        /// The action link, which is ASCII.
        var link: Text
    }

    private init(subject: Text, text: Text, html: Text) {
        self.subject = subject
        self.text = text
        self.html = html
    }

    /// By the tenant's template for this kind and language, else by our own English words.
    init(_ type: OobRequestType, _ values: Values, templates: [EmailTemplate], locale: Text) {
        guard let template = Self.template(type, in: templates, locale: locale) else {
            self.init(
                type, appName: values.appName, email: values.email, newEmail: values.newEmail, link: values.link)
            return
        }
        self.init(
            subject: Self.line(Self.filled(template.subject.string, values) { $0 }),
            text: Text(Self.filled(template.text.string, values) { $0 }),
            html: Text(Self.filled(template.html.string, values, Self.escaped)))
    }

    /// The language itself, then its primary one ("de" for "de-CH"), then the one for every language.
    private static func template(
        _ type: OobRequestType, in templates: [EmailTemplate], locale: Text
    ) -> EmailTemplate? {
        let wanted = locale.string.lowercased()
        let primary = wanted.split(separator: "-").first.map(String.init) ?? ""
        for candidate in [wanted, primary, ""] {
            let found = templates.first {
                $0.requestType == type && $0.locale.string.lowercased() == candidate
            }
            if let found { return found }
        }
        return nil
    }

    private static let placeholders: [(name: String, value: @Sendable (Values) -> Text)] = [
        ("LINK", { $0.link }), ("EMAIL", { $0.email }), ("NEW_EMAIL", { $0.newEmail }),
        ("DISPLAY_NAME", { $0.displayName }), ("APP_NAME", { $0.appName }),
    ]

    /// One pass from left to right: what a value holds is never taken for a placeholder.
    private static func filled(_ template: String, _ values: Values, _ encode: (String) -> String) -> String {
        var filled = ""
        var rest = template[...]
        while let start = rest.firstIndex(of: "%") {
            filled += rest[..<start]
            rest = rest[start...]
            let found = placeholders.first { rest.hasPrefix("%\($0.name)%") }
            if let found {
                filled += encode(found.value(values).string)
                rest = rest.dropFirst(found.name.count + 2)
            } else {
                filled.append(rest.removeFirst())
            }
        }
        return filled + rest
    }

    /// Without what ends a line: the names in it may hold U+2028, which is no control character.
    private static func line(_ text: String) -> Text { Text(text.filter { !$0.isNewline }) }

    /// The first `%NAME%` of capitals that is none of ours.
    static func unknownPlaceholder(in template: String) -> String? {
        let parts = template.split(separator: "%", omittingEmptySubsequences: false)
        return parts.dropFirst().dropLast().map(String.init).first { part in
            !part.isEmpty && part.allSatisfy { $0 == "_" || ("A"..."Z").contains($0) }
                && !placeholders.contains { $0.name == part }
        }
    }

    private init(_ type: OobRequestType, appName: Text, email: Text, newEmail: Text, link: Text) {
        let app = appName.isEmpty ? "your account" : appName.string
        let words = Self.words(type, app: app, email: email.string, newEmail: newEmail.string)
        let href = Self.escaped(link.string)
        self.init(
            subject: Self.line(words.subject), text: Text("Hello,\n\n\(words.lead)\n\n\(link)\n\n\(words.otherwise)\n"),
            html: Text(
                """
                <p>Hello,</p>
                <p>\(Self.escaped(words.lead))</p>
                <p><a href="\(href)">\(href)</a></p>
                <p>\(Self.escaped(words.otherwise))</p>

                """))
    }

    private static func words(
        _ type: OobRequestType, app: String, email: String, newEmail: String
    ) -> (subject: String, lead: String, otherwise: String) {
        let ignore = "If you did not ask for this, you can ignore this mail."
        switch type {
        case .verifyEmail, .unspecified:
            return ("Verify your email for \(app)", "Follow this link to verify your email address \(email):", ignore)
        case .passwordReset:
            return (
                "Reset your password for \(app)",
                "Follow this link to set a new password for the account of \(email). It is good for one hour:", ignore
            )
        case .emailSignin:
            return (
                "Sign in to \(app)", "Follow this link to sign in with \(email). It is good for 15 minutes:", ignore
            )
        case .verifyAndChangeEmail:
            return (
                "Verify your new email for \(app)",
                "Follow this link to make \(newEmail) the email address of your account:", ignore
            )
        case .recoverEmail:
            return (
                "Your email for \(app) was changed",
                "The email address of your account was changed to \(newEmail). If it was not you who did that, follow "
                    + "this link to take the change back and to end every session:",
                "If it was you, you can ignore this mail."
            )
        }
    }

    static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.append(character)
            }
        }
        return escaped
    }
}

/// The link of a mail: the action page's URL with what the page needs.
enum ActionLink {
    static func make(
        base: Text, _ type: OobRequestType, code: Text, tenantID: Text, continueURL: Text
    ) -> Text {
        var query = "mode=\(mode(type))&oobCode=\(code)"
        if !tenantID.isEmpty { query += "&tenantId=\(encoded(tenantID))" }
        if !continueURL.isEmpty { query += "&continueUrl=\(encoded(continueURL))" }
        return Text("\(base)\(base.bytes.contains(UInt8(ascii: "?")) ? "&" : "?")\(query)")
    }

    private static func mode(_ type: OobRequestType) -> String {
        switch type {
        case .verifyEmail, .unspecified: "verifyEmail"
        case .passwordReset: "resetPassword"
        case .emailSignin: "signIn"
        case .verifyAndChangeEmail: "verifyAndChangeEmail"
        case .recoverEmail: "recoverEmail"
        }
    }

    /// Percent-encoding of everything but RFC 3986's unreserved characters.
    private static func encoded(_ text: Text) -> String {
        let digits = Array("0123456789ABCDEF")
        return text.bytes.reduce(into: "") { encoded, byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                encoded += "%"
                encoded.append(digits[Int(byte >> 4)])
                encoded.append(digits[Int(byte & 15)])
            }
        }
    }
}
