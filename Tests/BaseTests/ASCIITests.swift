import Base
import Testing

@Suite struct ASCIITests {
    private static func characters(where isMember: (UInt8) -> Bool) -> String {
        String(decoding: (UInt8.min...UInt8.max).filter(isMember), as: UTF8.self)
    }

    @Test func classesHoldTheseCharactersAndNoOthers() {
        let (upper, lower) = ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
        #expect(Self.characters(where: \.isASCIIDigit) == "0123456789")
        #expect(Self.characters(where: \.isASCIIUppercase) == upper)
        #expect(Self.characters(where: \.isASCIILowercase) == lower)
        #expect(Self.characters(where: \.isASCIILetter) == upper + lower)
        #expect(Self.characters(where: \.isLowercaseLDH) == "-0123456789" + lower)
    }

    @Test func onlyTheLettersOfASCIIAreLowered() {
        #expect("@AZ[azÄ".utf8.lowercasedASCII == Array("@az[azÄ".utf8))
        let others = (UInt8.min...UInt8.max).filter { !$0.isASCIIUppercase }
        #expect(others.lowercasedASCII == others)
    }

    @Test func bytesAreANumberWithTheMostSignificantFirst() {
        #expect([UInt8]().bigEndianNumber == 0)
        #expect(([1, 2] as [UInt8]).bigEndianNumber == 0x0102)
        #expect([UInt8](repeating: 0xFF, count: 8).bigEndianNumber == .max)
        #expect(([7, 1, 0, 0, 0, 0, 0, 0, 2] as [UInt8]).bigEndianNumber == 1 << 56 | 2)
    }
}
