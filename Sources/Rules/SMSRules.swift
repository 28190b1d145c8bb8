public import Base
public import Messages

// A tenant's settings for phone numbers: where codes are sent, and which numbers are for tests. Pure.

/// The regions whose numbers are sent codes.
public struct SMSRegions: Sendable {
    private let allowed: Set<Text>
    private let blocked: Set<Text>

    init(_ tenant: Messages.Tenant) {
        allowed = Set(tenant.allowedSMSRegions)
        blocked = Set(tenant.blockedSMSRegions)
    }

    /// Whether codes may be sent to the region. Numbers of no country are never sent anything.
    public func allows(_ region: PhoneRegion) -> Bool {
        !blocked.contains(region.text) && (allowed.isEmpty || allowed.contains(region.text))
    }

    /// Whether an admin listed the region. Other regions have an hourly budget, because nobody may have thought of
    /// them.
    public func names(_ region: PhoneRegion) -> Bool { allowed.contains(region.text) }
}

public enum SMSRules {
    static let regionsMax = 250
    static let testNumbersMax = 10
    static let codeDigitCount = 6

    /// INVALID_SMS_REGION.
    static func checkRegions(_ regions: [Text], field: String) throws(Failure) {
        guard regions.count <= regionsMax, regions.allSatisfy({ PhoneRegion($0) != nil }) else {
            throw .invalid(
                .invalidSMSRegion, field: field,
                "must be at most \(regionsMax) regions, each two capital letters of ISO 3166-1")
        }
    }

    /// The numbers in their one form. INVALID_TEST_PHONE_NUMBER.
    static func checked(_ numbers: [TestPhoneNumber]) throws(Failure) -> [TestPhoneNumber] {
        var checked: [TestPhoneNumber] = []
        for test in numbers {
            guard numbers.count <= testNumbersMax, let number = PhoneNumber(test.phoneNumber), isCode(test.code.bytes),
                !checked.contains(where: { $0.phoneNumber == number.text })
            else {
                throw .invalid(
                    .invalidTestPhoneNumber, field: "test_phone_numbers",
                    "must be at most \(testNumbersMax) different numbers in E.164 form with six digits of a code each")
            }
            checked.append(TestPhoneNumber(phoneNumber: number.text, code: test.code))
        }
        return checked
    }

    /// Six ASCII digits.
    public static func isCode(_ bytes: [UInt8]) -> Bool {
        bytes.count == codeDigitCount && bytes.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// A code that nobody can predict: all of the million codes are equally likely.
    public static func makeCode(_ random: RandomSource) -> [UInt8] {
        while true {
            let value = random.bytes(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            // The greatest multiple of a million that fits; values above it would make some codes likelier.
            guard value < 4_294_000_000 else { continue }
            let digits = [UInt8](String(value % 1_000_000).utf8)
            return [UInt8](repeating: UInt8(ascii: "0"), count: codeDigitCount - digits.count) + digits
        }
    }
}

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

    /// The server's own words. They say what the code is for before everything else, so that a user whom a stranger
    /// asks for a code reads what it would do. No code is for others: one that adds a number which has an account
    /// already lets its holder into that account, by a temporary proof.
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
        let wanted = lowercased(locale.bytes)
        for candidate in [wanted, Array(wanted.prefix { $0 != UInt8(ascii: "-") }), []] {
            let spoken = templates.filter { lowercased($0.locale.bytes) == candidate }
            let found = spoken.first { $0.purpose == purpose } ?? spoken.first { $0.purpose == .unspecified }
            if let found { return found.text }
        }
        return nil
    }

    /// Language tags are ASCII (RFC 5646 §2.1).
    private static func lowercased(_ tag: [UInt8]) -> [UInt8] {
        tag.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }
    }

    private static func replacing(_ name: StaticString, in text: [UInt8], by value: [UInt8]) -> [UInt8] {
        let mark = name.withUTF8Buffer { [UInt8]($0) }
        var (filled, rest): ([UInt8], ArraySlice<UInt8>) = ([], text[...])
        while let byte = rest.first {
            if rest.starts(with: mark) {
                filled += value
                rest = rest.dropFirst(mark.count)
            } else {
                filled.append(byte)
                rest = rest.dropFirst()
            }
        }
        return filled
    }
}
