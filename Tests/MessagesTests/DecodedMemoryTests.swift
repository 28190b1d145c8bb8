import Base
import Messages
import Testing

/// What is counted for a decoded request is as much as the request takes.
@Suite struct DecodedMemoryTests {
    private static func counted<Request: Message>(_ request: Request) -> Int {
        request.encoded().withUnsafeBytes { Request.memoryByteCount(decoding: $0) }
    }

    /// An array of bytes: Swift's header of 32, glibc's of 8, in steps of 16.
    private static func blockByteCount(_ byteCount: Int) -> Int {
        byteCount == 0 ? 0 : (32 + byteCount + 8 + 15) / 16 * 16
    }

    @Test func `Short texts count as many times their bytes as they take`() {
        for byteCount in 0...100 {
            let uid = Text(unchecked: [UInt8](repeating: UInt8(ascii: "x"), count: byteCount))
            let counted = Self.counted(UsersBatchDeleteRequest(uids: [Text](repeating: uid, count: 1_000)))
            let taken = 1_000 * (8 + Self.blockByteCount(byteCount))
            #expect(counted >= taken, "\(byteCount)")
            if byteCount > 0 { #expect(counted < taken * 3 / 2, "\(byteCount)") }
        }
    }

    @Test func `Inner messages count even if they are empty`() {
        let users = [ImportUser](repeating: ImportUser(), count: 500)
        // Each has a secret without content: an object and its storage.
        let taken = 500 * (MemoryLayout<ImportUser>.stride + 48 + 32)
        #expect(Self.counted(UsersImportRequest(users: users)) >= taken)
    }

    @Test func `A flat message counts its bytes and little more`() {
        let token = Text(unchecked: [UInt8](repeating: UInt8(ascii: "x"), count: 1_000))
        let counted = Self.counted(UsersListRequest(tenantID: "acme", pageToken: token))
        #expect(counted >= 1_000 + MemoryLayout<UsersListRequest>.stride && counted < 2_000)
    }
}
