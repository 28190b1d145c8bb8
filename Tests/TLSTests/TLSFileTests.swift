import Base
import Glibc
import TLS
import TestSupport
import Testing

@Suite struct TLSFileTests {
    private static func complaint(_ path: String, isSecret: Bool = false) -> String {
        do throws(TLSError) {
            _ = try TLSFile.read(path, byteCountMax: 1_000, isSecret: isSecret)
            return ""
        } catch { return "\(error)" }
    }

    @Test func `A file with as many bytes as the limit is read, and one with more is refused`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/file"
            for (byteCount, isRead) in [(0, true), (1_000, true), (1_001, false), (100_000, false)] {
                writeFile(path, [UInt8](repeating: 0x61, count: byteCount))
                let said = Self.complaint(path)
                #expect(isRead ? said.isEmpty : said.contains("is longer than 1000 bytes"), "\(byteCount): \(said)")
            }
        }
    }

    @Test func `Only a regular file is read, and a secret only if not everybody may`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/file"
            #expect(mkfifo("\(directory)/pipe", 0o600) == 0)
            for wrong in [directory, "\(directory)/pipe"] {
                #expect(Self.complaint(wrong).contains("must be a regular file"), "\(wrong)")
            }
            writeFile(path, [0x61])
            for mode: mode_t in [0o600, 0o400, 0o640, 0o644, 0o604, 0o602] {
                #expect(chmod(path, mode) == 0)
                let said = Self.complaint(path, isSecret: true)
                #expect(mode & 0o007 == 0 ? said.isEmpty : said.contains("chmod 600"), "\(mode): \(said)")
            }
        }
    }
}
