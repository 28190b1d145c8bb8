public import Base
import Messages

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

/// The checks of a tenant's settings for phone numbers, and the form of the codes that are sent to them. Pure.
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
        bytes.count == codeDigitCount && bytes.allSatisfy(\.isASCIIDigit)
    }

    /// A code that nobody can predict: all of the million codes are equally likely.
    public static func makeCode(_ random: RandomSource) -> [UInt8] {
        while true {
            let value = random.bytes(4).bigEndianNumber
            // The greatest multiple of a million that fits; values above it would make some codes likelier.
            guard value < 4_294_000_000 else { continue }
            let digits = [UInt8](String(value % 1_000_000).utf8)
            return [UInt8](repeating: UInt8(ascii: "0"), count: codeDigitCount - digits.count) + digits
        }
    }
}
