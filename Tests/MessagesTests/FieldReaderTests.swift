import Base
import Messages
import Testing

@Suite struct FieldReaderTests {
    @Test func `the stored user is copied out of its record without decoding`() {
        let user = User(tenantID: "acme", uid: "u1").encoded()
        let record = StoredUser(user: user, passwordHash: "x", passwordUpdatedAtMicros: 3).encoded()
        let found = record.withUnsafeBytes { firstField(1, in: $0).map { [UInt8]($0) } }
        #expect(found == user)
    }

    @Test(
        arguments: [
            [], EncodedBytes.text(3, "x"), EncodedBytes.tag(3, 3) + EncodedBytes.text(2, "x"), [0x12, 5, 1],
            EncodedBytes.integer(2, 1),
        ] as [[UInt8]])
    func `a field that is absent, no bytes, or behind malformed bytes is not found`(bytes: [UInt8]) {
        #expect(bytes.withUnsafeBytes { firstField(2, in: $0) == nil })
    }

    @Test func `the first varint of a field is found behind fields of other kinds`() {
        let bytes =
            EncodedBytes.text(2, "x") + EncodedBytes.integer(1, 5) + EncodedBytes.integer(2, 300)
            + EncodedBytes.integer(2, 7)
        #expect(bytes.withUnsafeBytes { firstVarint(2, in: $0) } == 300)
    }

    @Test(
        arguments: [
            [], EncodedBytes.integer(3, 1), EncodedBytes.tag(3, 3) + EncodedBytes.integer(2, 1), [0x10, 0x80],
            EncodedBytes.text(2, "x"),
        ] as [[UInt8]])
    func `a varint that is absent, another kind, or behind malformed bytes is not found`(bytes: [UInt8]) {
        #expect(bytes.withUnsafeBytes { firstVarint(2, in: $0) } == nil)
    }

    @Test func `every wire type is read with its value`() throws {
        let bytes: [[UInt8]] = [
            EncodedBytes.integer(1, 300), EncodedBytes.tag(2, 1), [1, 0, 0, 0, 0, 0, 0, 2], EncodedBytes.text(3, "ab"),
            EncodedBytes.tag(4, 5), [4, 3, 2, 1],
        ]
        var seen: [String] = []
        try bytes.flatMap { $0 }.withUnsafeBytes { raw in
            var reader = FieldReader(raw)
            while let field = try reader.next() {
                switch field.value {
                case .varint(let value): seen.append("\(field.number) varint \(value)")
                case .fixed64(let value): seen.append("\(field.number) fixed64 \(value)")
                case .fixed32(let value): seen.append("\(field.number) fixed32 \(value)")
                case .bytes(let content): seen.append("\(field.number) bytes \([UInt8](content))")
                }
            }
        }
        #expect(seen == ["1 varint 300", "2 fixed64 144115188075855873", "3 bytes [97, 98]", "4 fixed32 16909060"])
    }
}
