public import Base
public import Messages

/// The words of an SMS. Pure.
public enum SMSText {
    static let templatesMax = 50
    static let templateByteCountMax = 480

    /// Uses the tenant's template for this purpose and language, or else the server's own English words.
    public static func text(
        _ purpose: VerificationPurpose, code: [UInt8], appName: Text, templates: [SmsTemplate], locale: Text
    ) -> Text {
        let template = template(purpose, in: templates, locale: locale) ?? standard(purpose, hasName: !appName.isEmpty)
        let named = replacing("%APP_NAME%", in: template.bytes, by: appName.bytes)
        return Text(unchecked: replacing("%CODE%", in: named, by: code))
    }

    /// INVALID_TEMPLATE.
    public static func check(_ templates: [SmsTemplate], limits: Limits) throws(Failure) {
        let isGood = templates.allSatisfy { template in
            (1...templateByteCountMax).contains(template.text.byteCount) && template.text.contains("%CODE%")
                && template.locale.byteCount <= limits.localeMax
                && template.text.bytes.allSatisfy { ($0 >= 0x20 || $0 == 0x0A) && $0 != 0x7F }
        }
        guard isGood, templates.count <= templatesMax else {
            throw .invalid(
                .invalidTemplate, field: "config.templates",
                "must be at most \(templatesMax), each with a text of at most \(templateByteCountMax) bytes and %CODE%")
        }
    }

    /// The server's own words. They begin with the purpose of the code, so that a user whom a stranger asks for a code
    /// reads what the stranger would do with it. No text invites the user to pass a code on: even a code to add a
    /// number lets its holder, by a temporary proof, into an account that has the number already.
    private static func standard(_ purpose: VerificationPurpose, hasName: Bool) -> Text {
        switch purpose {
        case .link where hasName:
            "%CODE% is your code to add this phone number to your %APP_NAME% account. Give it to nobody."
        case .link: "%CODE% is your code to add this phone number to your account. Give it to nobody."
        case .secondFactorEnrollment where hasName:
            "%CODE% is your code to use this phone as a second factor for %APP_NAME%. Give it to nobody."
        case .secondFactorEnrollment:
            "%CODE% is your code to use this phone as a second factor. Give it to nobody."
        case .secondFactorSignIn where hasName:
            "%CODE% is your second factor to sign in to %APP_NAME%. Give it to nobody."
        case .secondFactorSignIn: "%CODE% is your second factor to sign in. Give it to nobody."
        case .signIn where hasName, .unspecified where hasName:
            "%CODE% is your code to sign in to %APP_NAME%. Give it to nobody."
        case .signIn, .unspecified: "%CODE% is your code to sign in. Give it to nobody."
        }
    }

    /// The template for the language itself, else for its primary one, else for every language; in each the purpose's
    /// own template comes before the one for all purposes.
    private static func template(
        _ purpose: VerificationPurpose, in templates: [SmsTemplate], locale: Text
    ) -> Text? {
        for tag in TemplateLocales.tags(for: locale) {
            let ofLanguage = templates.filter { $0.locale.bytes.lowercasedASCII == tag }
            let found = ofLanguage.first { $0.purpose == purpose } ?? ofLanguage.first { $0.purpose == .unspecified }
            if let found { return found.text }
        }
        return nil
    }

    private static func replacing(_ name: StaticString, in text: [UInt8], by value: [UInt8]) -> [UInt8] {
        let placeholder = name.withUTF8Buffer { [UInt8]($0) }
        var (filled, rest): ([UInt8], ArraySlice<UInt8>) = ([], text[...])
        while let byte = rest.first {
            if rest.starts(with: placeholder) {
                filled += value
                rest = rest.dropFirst(placeholder.count)
            } else {
                filled.append(byte)
                rest = rest.dropFirst()
            }
        }
        return filled
    }
}
