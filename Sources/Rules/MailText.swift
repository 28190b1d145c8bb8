public import Base
public import Messages

/// The words of a mail, in plain text and HTML. Pure.
public struct MailText: Sendable {
    public let subject: Text
    public let text: Text
    public let html: Text
    /// Whether there is a template that would have made the mail too long.
    public private(set) var isFallback = false
    /// Whether the words are a template's.
    public private(set) var isFromTemplate = false

    /// The values of a mail's placeholders.
    public struct Values: Sendable {
        /// The tenant's display name.
        public var appName: Text
        public var email: Text
        public var newEmail: Text
        /// The user's name; empty for a user without one, and for a name that mail clients could make a link of.
        public let displayName: Text
        /// The action link, which is ASCII.
        public var link: Text
        /// The link "This was not me"; empty for a kind of mail without one.
        public var notMeLink: Text = .empty

        public init(
            appName: Text, email: Text, newEmail: Text, displayName: Text, link: Text, notMeLink: Text = .empty
        ) {
            self.appName = appName
            self.email = email
            self.newEmail = newEmail
            self.displayName = Self.couldBeLink(displayName) ? .empty : displayName
            self.link = link
            self.notMeLink = notMeLink
        }

        /// Whether mail clients could make a link of the name or of a part of it: of a URL, a host or an address.
        /// Anybody may sign up with somebody else's address and with such a name, and the mail is genuine.
        static func couldBeLink(_ name: Text) -> Bool {
            let scalars = Array(name.string.unicodeScalars).filter { !$0.properties.isDefaultIgnorableCodePoint }
            return scalars.indices.contains { index in
                let rest = scalars[index...].prefix(3)
                if rest.starts(with: ["/", "/"]) { return true }
                // A dot within a word, before two more of its characters: "evil.example", and neither "J.R. Smith" nor
                // "J.-P. Dupont". No label of a host begins with a hyphen.
                guard index > 0, rest.count == 3, isDot(rest[index]) else { return false }
                return !endsLabel(scalars[index - 1]) && isAlphanumeric(rest[index + 1]) && !endsLabel(rest[index + 2])
            }
        }

        /// The dots that separate the labels of a host: UTS #46, section 2.3.
        private static func isDot(_ scalar: Unicode.Scalar) -> Bool {
            [".", "\u{3002}", "\u{FF0E}", "\u{FF61}"].contains(scalar)
        }

        private static func endsLabel(_ scalar: Unicode.Scalar) -> Bool {
            // Not bytes: one scalar of a name.
            scalar.properties.isWhitespace || isDot(scalar)
        }

        private static func isAlphanumeric(_ scalar: Unicode.Scalar) -> Bool {
            scalar.properties.isAlphabetic || scalar.properties.numericType != nil
        }
    }

    private init(subject: Text, text: Text, html: Text) {
        self.subject = subject
        self.text = text
        self.html = html
    }

    /// Uses the tenant's template for this kind and language, or else the server's own English words. Those also
    /// replace a template that would make a mail of more than `byteCountMax` bytes: a mail is never lost because of its
    /// template.
    public init(_ type: OobRequestType, _ values: Values, templates: [EmailTemplate], locale: Text, byteCountMax: Int) {
        let template = Self.template(type, in: templates, locale: locale)
        if let template, let filled = MailText(template, values, byteCountMax: byteCountMax) {
            self = filled
            isFromTemplate = true
        } else {
            self.init(type, values)
            isFallback = template != nil
        }
    }

    /// Nil above `byteCountMax` for subject, text and HTML together.
    private init?(_ template: EmailTemplate, _ values: Values, byteCountMax: Int) {
        guard let parts = Self.parts(template, values, byteCountMax: byteCountMax) else { return nil }
        self.init(
            subject: Self.line(parts.subject), text: Text(unchecked: parts.text), html: Text(unchecked: parts.html))
    }

    /// Nil above `byteCountMax` for all three together; hardly more than that is ever in memory.
    static func parts(
        _ template: EmailTemplate, _ values: Values, byteCountMax: Int
    ) -> (subject: [UInt8], text: [UInt8], html: [UInt8])? {
        let (body, page) = withNotMeLink(template.text, template.html, isNeeded: !values.notMeLink.isEmpty)
        guard let subject = filled(template.subject, values, byteCountMax: byteCountMax, { $0.bytes }),
            let text = filled(body, values, byteCountMax: byteCountMax - subject.count, { $0.bytes }),
            let html = filled(page, values, byteCountMax: byteCountMax - subject.count - text.count, escaped)
        else { return nil }
        return (subject, text, html)
    }

    /// The template for the language itself, else for its primary one ("de" for "de-CH"), else for every language.
    private static func template(
        _ type: OobRequestType, in templates: [EmailTemplate], locale: Text
    ) -> EmailTemplate? {
        for tag in TemplateLocales.tags(for: locale) {
            let found = templates.first { $0.requestType == type && $0.locale.bytes.lowercasedASCII == tag }
            if let found { return found }
        }
        return nil
    }

    private static let placeholders: [(name: [UInt8], value: @Sendable (Values) -> Text)] = [
        ([UInt8]("%LINK%".utf8), { $0.link }), ([UInt8]("%EMAIL%".utf8), { $0.email }),
        ([UInt8]("%NEW_EMAIL%".utf8), { $0.newEmail }), ([UInt8]("%DISPLAY_NAME%".utf8), { $0.displayName }),
        ([UInt8]("%APP_NAME%".utf8), { $0.appName }), ([UInt8]("%NOT_ME_LINK%".utf8), { $0.notMeLink }),
    ]

    /// From the shortest placeholder to the longest.
    private static let placeholderByteCounts: ClosedRange<Int> = {
        let counts = placeholders.map { $0.name.count }
        return (counts.min() ?? 0)...(counts.max() ?? 0)
    }()

    /// Returns the function that finds a placeholder's value; nil if there is no placeholder of this name. The name has
    /// a "%" on both sides.
    static func placeholderValue(named name: UnsafeRawBufferPointer) -> (@Sendable (Values) -> Text)? {
        // A template may be a long row of "%", of which no two are as far apart as those of a placeholder.
        guard placeholderByteCounts.contains(name.count) else { return nil }
        return placeholders.first { placeholder in
            placeholder.name.withUnsafeBytes { $0.hasSameBytes(as: name) }
        }?.value
    }

    static let notMeSentence =
        "Was this not you? Then do not use the link above. This one takes your address away from that account:"

    /// The bodies of a template. If the mail has a link "This was not me", it is appended to each body that does not
    /// place it.
    private static func withNotMeLink(_ text: Text, _ html: Text, isNeeded: Bool) -> (text: Text, html: Text) {
        guard isNeeded else { return (text, html) }
        func appending(_ words: String, to body: Text) -> Text {
            body.contains("%NOT_ME_LINK%") ? body : Text(unchecked: body.bytes + words.utf8)
        }
        return (
            appending("\n\n\(notMeSentence)\n\n%NOT_ME_LINK%\n", to: text),
            appending("\n\(paragraphs(notMeSentence, href: "%NOT_ME_LINK%"))", to: html)
        )
    }

    /// `href` is escaped already, or a placeholder.
    private static func paragraphs(_ sentence: String, href: String) -> String {
        "<p>\(html(sentence))</p>\n<p><a href=\"\(href)\">\(href)</a></p>\n"
    }

    /// Fills a template in one pass from left to right: the content of a value is never taken for a placeholder. Nil
    /// above `byteCountMax`.
    private static func filled(
        _ template: Text, _ values: Values, byteCountMax: Int, _ encode: (Text) -> [UInt8]
    ) -> [UInt8]? {
        template.bytes.withUnsafeBytes { (template: UnsafeRawBufferPointer) -> [UInt8]? in
            var filled: [UInt8] = []
            // Everything before this place is in `filled`.
            var start = 0
            var sign = template.place(of: percent, from: 0)
            while let first = sign, let last = template.place(of: percent, from: first + 1) {
                let name = UnsafeRawBufferPointer(rebasing: template[first...last])
                guard let value = placeholderValue(named: name) else {
                    sign = last
                    continue
                }
                filled.append(contentsOf: UnsafeRawBufferPointer(rebasing: template[start..<first]))
                filled.append(contentsOf: encode(value(values)))
                guard filled.count <= byteCountMax else { return nil }
                start = last + 1
                sign = template.place(of: percent, from: start)
            }
            filled.append(contentsOf: UnsafeRawBufferPointer(rebasing: template[start...]))
            return filled.count <= byteCountMax ? filled : nil
        }
    }

    static let percent = UInt8(ascii: "%")

    /// The text without line ends: the names in it may hold U+2028, which is not a control character.
    private static func line(_ text: [UInt8]) -> Text {
        var line = String.UnicodeScalarView()
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            switch scalar.value {
            case 0x0A...0x0D, 0x85, 0x2028, 0x2029: break
            default: line.append(scalar)
            }
        }
        return Text(unchecked: [UInt8](String(line).utf8))
    }

    private init(_ type: OobRequestType, _ values: Values) {
        let app = values.appName.isEmpty ? "your account" : values.appName.string
        let words = Self.words(type, app: app, email: values.email.string, newEmail: values.newEmail.string)
        var text = "Hello,\n\n\(words.lead)\n\n\(values.link)\n\n\(words.otherwise)\n"
        var html = "<p>Hello,</p>\n" + Self.paragraphs(words.lead, href: Self.html(values.link.string))
        html += "<p>\(Self.html(words.otherwise))</p>\n"
        if !values.notMeLink.isEmpty {
            text += "\n\(values.notMeLink)\n"
            let href = Self.html(values.notMeLink.string)
            html += "<p><a href=\"\(href)\">\(href)</a></p>\n"
        }
        self.init(subject: Self.line([UInt8](words.subject.utf8)), text: Text(text), html: Text(html))
    }

    private static func words(
        _ type: OobRequestType, app: String, email: String, newEmail: String
    ) -> (subject: String, lead: String, otherwise: String) {
        let ignore = "If you did not ask for this, you can ignore this mail."
        switch type {
        case .verifyEmail, .unspecified:
            return (
                "Verify your email for \(app)",
                "Somebody, hopefully you, uses your address \(email) for an account. Follow this link to confirm that "
                    + "the account is yours:", notMeSentence
            )
        case .passwordReset:
            return (
                "Reset your password for \(app)",
                "Follow this link to set a new password for the account of \(email). It is good for one hour:", ignore
            )
        case .rejectEmail:
            // No mail of its own: the link is in the mails of VERIFY_EMAIL and VERIFY_AND_CHANGE_EMAIL.
            return ("Your address and \(app)", "Follow this link if an account with your address is not yours:", ignore)
        case .emailSignin:
            return (
                "Sign in to \(app)", "Follow this link to sign in with \(email). It is good for 15 minutes:", ignore
            )
        case .verifyAndChangeEmail:
            return (
                "Verify your new email for \(app)",
                "Somebody, hopefully you, wants to make \(newEmail) the email address of an account. Follow this link "
                    + "to confirm that the account is yours:", notMeSentence
            )
        case .recoverEmail:
            return (
                "Your email for \(app) was changed",
                "The email address of your account was changed to \(newEmail). If it was not you who did that, follow "
                    + "this link to take the change back and to end every session:",
                "If it was you, you can ignore this mail."
            )
        case .revertSecondFactorAddition:
            return (
                "A second factor was added to \(app)",
                "A phone number or an authenticator app is asked for at every sign-in of \(email) from now on. If it "
                    + "was not you who added it, follow this link to remove it and to end every session:",
                "If it was you, you can ignore this mail."
            )
        }
    }

    private static func html(_ text: String) -> String {
        String(decoding: escaped(Text(unchecked: [UInt8](text.utf8))), as: UTF8.self)
    }

    /// Escapes byte by byte: a `Character` may hold more than one scalar, and a "<" that hides in one is still a "<" to
    /// a browser.
    public static func escaped(_ text: Text) -> [UInt8] {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(text.byteCount)
        for byte in text.bytes {
            switch byte {
            case UInt8(ascii: "&"): escaped += "&amp;".utf8
            case UInt8(ascii: "<"): escaped += "&lt;".utf8
            case UInt8(ascii: ">"): escaped += "&gt;".utf8
            case UInt8(ascii: "\""): escaped += "&quot;".utf8
            case UInt8(ascii: "'"): escaped += "&#39;".utf8
            default: escaped.append(byte)
            }
        }
        return escaped
    }
}
