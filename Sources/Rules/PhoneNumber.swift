public import Base

/// A phone number in the one form that is stored and compared: E.164 (ITU-T), all ASCII. Pure.
///
/// | typed | number | region |
/// |---|---|---|
/// | `+1 (415) 555-0123` | `+14155550123` | US |
/// | `+44 1481 960 194` | `+441481960194` | GG |
/// | `+44 (0)20 7946 0000` | none: 0 is dialled at home only, and the same phone must not have two numbers | |
/// | `020 7946 0000`, `0044 20 7946 0000` | none: which country is meant depends on where it is dialled | |
///
/// A number is judged by its calling code and its length (docs/decisions/0060). Only a message to the number can tell
/// whether somebody has it.
public struct PhoneNumber: Sendable, Hashable {
    /// The length of the longest typed number, blanks and hyphens included.
    public static let typedByteCountMax = 32

    /// "+14155550123".
    public let text: Text
    /// Nil for numbers of no country: satellite phones, international services.
    public let region: PhoneRegion?

    /// Reads a number as somebody typed it.
    public init?(_ typed: Text) {
        guard typed.byteCount <= Self.typedByteCountMax, typed.bytes.first == UInt8(ascii: "+") else { return nil }
        var digits: [UInt8] = []
        for byte in typed.bytes.dropFirst() {
            switch byte {
            case 0x30...0x39: digits.append(byte)
            case UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "("), UInt8(ascii: ")"): break
            default: return nil
            }
        }
        guard (4...15).contains(digits.count), let region = CallingCodes.plan.region(of: digits) else { return nil }
        self.text = Text(unchecked: [UInt8(ascii: "+")] + digits)
        self.region = region.region
    }
}

extension PhoneNumber {
    /// Reads the number of a request. MISSING_PHONE_NUMBER, INVALID_PHONE_NUMBER.
    public static func read(_ typed: Text) throws(Failure) -> PhoneNumber {
        if typed.isEmpty { throw .missingPhoneNumber }
        guard let number = PhoneNumber(typed) else { throw .invalidPhoneNumber }
        return number
    }
}

/// A country or territory as phone numbers tell it: two capital letters of ISO 3166-1 ("XK" is Kosovo).
public struct PhoneRegion: Sendable, Hashable {
    public let text: Text

    /// Nil for a text of another form, or without a calling code.
    public init?(_ text: Text) {
        self.init(form: text.bytes)
        guard CallingCodes.plan.regions.contains(self) else { return nil }
    }

    /// Checks the form only.
    fileprivate init?(form bytes: [UInt8]) {
        guard bytes.count == 2, bytes.allSatisfy(\.isASCIIUppercase) else { return nil }
        text = Text(unchecked: bytes)
    }
}

/// The calling codes of the world, read from `CallingCodePlan` at their first use.
struct CallingCodes: Sendable {
    static let plan = CallingCodes(CallingCodePlan.text)

    /// The region that a number's digits tell; a number of no country has none.
    struct Found { let region: PhoneRegion? }

    private struct Entry {
        var region: PhoneRegion?
        /// The lengths of national numbers.
        var lengths: Set<Int> = []
        var mayBeginWithZero = false
        /// The beginnings of the national numbers of further regions.
        var further: [[UInt8]: PhoneRegion] = [:]
    }

    private var entries: [[UInt8]: Entry] = [:]
    private(set) var regions: Set<PhoneRegion> = []

    /// `digits`: all of a number, without "+". Nil for a calling code or a length that does not exist.
    func region(of digits: [UInt8]) -> Found? {
        // No calling code is the beginning of another one.
        for count in 1...3 where count < digits.count {
            guard let entry = entries[Array(digits[..<count])] else { continue }
            let national = digits[count...]
            guard entry.lengths.contains(national.count),
                entry.mayBeginWithZero || national.first != UInt8(ascii: "0")
            else { return nil }
            let longest = (1...6).reversed().lazy.compactMap { entry.further[Array(national.prefix($0))] }.first
            return Found(region: longest ?? entry.region)
        }
        return nil
    }
}

extension CallingCodes {
    /// Text that is not an entry is left out; `PhoneNumberTests` count the entries that were read.
    init(_ plan: StaticString) {
        let bytes = plan.withUTF8Buffer { [UInt8]($0) }
        for text in bytes.split(separator: UInt8(ascii: ";")) {
            read(text.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") })
        }
    }

    private mutating func read(_ words: [ArraySlice<UInt8>]) {
        guard words.count >= 2 else { return }
        let (code, name) = Self.parts(of: words[0])
        var entry = Entry(region: PhoneRegion(form: name))
        entry.mayBeginWithZero = words[1].last == UInt8(ascii: "z")
        let lengths = words[1].filter { $0 != UInt8(ascii: "z") }.split(separator: UInt8(ascii: ","))
        entry.lengths = Set(lengths.compactMap { Int(String(decoding: $0, as: UTF8.self)) })
        if let region = entry.region { regions.insert(region) }
        for word in words.dropFirst(2) {
            let (prefix, name) = Self.parts(of: word)
            guard let region = PhoneRegion(form: name) else { continue }
            entry.further[prefix] = region
            regions.insert(region)
        }
        entries[code] = entry
    }

    /// "44GB" is 44 and GB; "800001" is 800 and no region.
    private static func parts(of word: ArraySlice<UInt8>) -> (digits: [UInt8], name: [UInt8]) {
        let letters = word.drop(while: \.isASCIIDigit)
        return letters.isEmpty ? (Array(word.dropLast(3)), []) : (Array(word.dropLast(letters.count)), Array(letters))
    }
}

extension Failure {
    static let missingPhoneNumber = Failure.invalid(.missingPhoneNumber, field: "phone_number", "is required")
    static let invalidPhoneNumber = Failure.invalid(
        .invalidPhoneNumber, field: "phone_number",
        "must begin with + and the country's calling code, for example +14155550123")
}
