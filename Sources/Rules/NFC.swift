@_spi(_Unicode) internal import Swift

/// Unicode's composed form (UAX #15): one spelling of what can be written in several.
enum NFC {
    static func composed(_ text: String) -> String { String(String.UnicodeScalarView(text._nfc)) }
}
