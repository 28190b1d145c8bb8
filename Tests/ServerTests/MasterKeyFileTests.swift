import Base
import Glibc
import TestSupport
import Testing

/// The file of the master key, and which files posternd refuses in its place.
@Suite struct MasterKeyFileTests {
    private static let digits = String(repeating: "0f", count: 32)

    /// Starts posternd with this key file and a data directory that does not exist yet; it must refuse to start.
    private static func expectRefusal(_ file: String, in directory: String, saying words: String) throws {
        let data = "\(directory)/data"
        let ended = try BackupTests.posternd(data, ["--listen-address", "127.0.0.1:0", "--master-key-file", file])
        #expect(ended.status == 1 && ended.said.contains(words), "\(ended.said)")
        #expect(access("\(data)/data.mdb", F_OK) != 0, "no store is made")
    }

    @Test(arguments: [0o640, 0o604, 0o644, 0o660, 0o601] as [mode_t])
    func `A key that others can read is refused`(mode: mode_t) throws {
        try withTemporaryDirectory { directory in
            let file = "\(directory)/key"
            writeFile(file, [UInt8](Self.digits.utf8))
            #expect(chmod(file, mode) == 0)
            try Self.expectRefusal(file, in: directory, saying: "chmod 600")
        }
    }

    @Test func `A link and a directory are refused`() throws {
        try withTemporaryDirectory { directory in
            let (file, link, folder) = ("\(directory)/key", "\(directory)/link", "\(directory)/folder")
            writeFile(file, [UInt8](Self.digits.utf8))
            #expect(chmod(file, 0o600) == 0 && symlink(file, link) == 0 && mkdir(folder, 0o700) == 0)
            for wrong in [link, folder] {
                try Self.expectRefusal(wrong, in: directory, saying: "must be a regular file")
            }
        }
    }

    @Test func `A key of another form is refused`() throws {
        let short = String(repeating: "0", count: 63)
        let long = String(repeating: "0", count: 256)
        for text in ["", short, "g" + short, Self.digits + "0", Self.digits + "00", Self.digits + "\n\n", long] {
            try Self.expectRefusal(of: text, saying: "must hold 64 hex digits")
        }
        try Self.expectRefusal(of: long + "0", saying: "File too large")
    }

    private static func expectRefusal(of text: String, saying words: String) throws {
        try withTemporaryDirectory { directory in
            let file = "\(directory)/key"
            writeFile(file, [UInt8](text.utf8))
            #expect(chmod(file, 0o600) == 0)
            try expectRefusal(file, in: directory, saying: words)
        }
    }
}
