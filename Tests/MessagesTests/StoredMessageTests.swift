import Base
import Messages
import Testing

/// What was accepted can always be read, however much it became.
@Suite struct StoredMessageTests {
    @Test func `A record may have more fields than a request`() throws {
        let limits = MessageLimits()
        let paths = (0...limits.fieldsMax).map { Text("\($0)") }
        let record = ProtobufFieldMask(paths: paths)
        let bytes = record.encoded()
        #expect(throws: DecodeError.self) { try ProtobufFieldMask(decoding: bytes) }
        let read = try ProtobufFieldMask(stored: bytes)
        #expect(read == record)
    }

    @Test func `A record may take more memory than a request`() throws {
        // An empty message takes two bytes when it is encoded, and much more when it is decoded.
        let count = 10_000
        let record = UsersListResponse(users: [User](repeating: User(), count: count))
        let bytes = record.encoded()
        #expect(bytes.count <= 2 * count)
        #expect(throws: DecodeError.self) { try UsersListResponse(decoding: bytes) }
        let read = try UsersListResponse(stored: bytes)
        #expect(read.users.count == count)
    }
}
