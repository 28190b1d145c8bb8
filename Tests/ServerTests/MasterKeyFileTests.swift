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

    @Test func `A directory, a device, and links to nothing or to a key that others can read are refused`() throws {
        try withTemporaryDirectory { directory in
            let (file, folder, nothing) = ("\(directory)/key", "\(directory)/folder", "\(directory)/nothing")
            let (link, readable) = ("\(directory)/link", "\(directory)/readable")
            writeFile(file, [UInt8](Self.digits.utf8))
            #expect(chmod(file, 0o644) == 0 && symlink(file, readable) == 0)
            #expect(mkdir(folder, 0o700) == 0 && symlink(nothing, link) == 0)
            for wrong in [folder, "/dev/null"] {
                try Self.expectRefusal(wrong, in: directory, saying: "must be a regular file")
            }
            try Self.expectRefusal(link, in: directory, saying: "there is no such file")
            #expect(access(nothing, F_OK) != 0, "no key is made where the link leads")
            try Self.expectRefusal(readable, in: directory, saying: "chmod 600")
        }
    }

    /// As Kubernetes mounts a secret: the file is a link through a folder that is a link, so that one rename exchanges
    /// all files.
    @Test func `A key behind links is read, and a file beside it stays`() throws {
        try withTemporaryDirectory { directory in
            let data = "\(directory)/data"
            #expect(mkdir("\(directory)/..1", 0o700) == 0 && symlink("..1", "\(directory)/..data") == 0)
            let file = "\(directory)/..1/key"
            writeFile(file, [UInt8](Self.digits.utf8))
            #expect(chmod(file, 0o400) == 0 && symlink("..data/key", "\(directory)/key") == 0)
            writeFile("\(directory)/key.new", [UInt8](Self.digits.utf8))
            let server = try ChildProcess(
                ChildProcess.built("posternd"),
                [
                    "--data-directory", data, "--listen-address", "127.0.0.1:0", "--http-address", "off",
                    "--signing-algorithm", "ES256", "--master-key-file", "\(directory)/key",
                ], output: "\(directory)/log")
            defer { server.kill() }
            // The key is made once the server listens.
            _ = try CrashTests.adminKey(data)
            #expect(access("\(data)/master-key", F_OK) != 0)
            #expect(access("\(directory)/key.new", F_OK) == 0)
        }
    }

    /// As Kubernetes mounts a secret for a user who is not root: the file is root's, and the user's group may read it.
    @Test(
        .enabled(if: geteuid() == 0, "only root can give a file away"),
        arguments: [0o440, 0o640, 0o444, 0o460] as [mode_t])
    func `A file of root's may be readable by the server's group alone`(mode: mode_t) throws {
        try withTemporaryDirectory { directory in
            let (file, user) = ("\(directory)/key", 65_532 as uid_t)
            writeFile(file, [UInt8](Self.digits.utf8))
            #expect(chown(file, 0, user) == 0 && chmod(file, mode) == 0 && chmod(directory, 0o711) == 0)
            let data = "\(directory)/data"
            #expect(mkdir(data, 0o700) == 0 && chown(data, user, user) == 0)
            let server = try ChildProcess(
                "setpriv",
                [
                    "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups", ChildProcess.built("posternd"),
                    "--data-directory", data, "--listen-address", "127.0.0.1:0", "--http-address", "off",
                    "--signing-algorithm", "ES256", "--master-key-file", file,
                ], output: "\(directory)/log")
            defer { server.kill() }
            if mode & 0o037 == 0 {
                // The key is made once the server listens.
                _ = try CrashTests.adminKey(data)
            } else {
                #expect(server.wait(seconds: 60) == 1)
                let said = String(decoding: readFile("\(directory)/log") ?? [], as: UTF8.self)
                #expect(said.contains("chmod 640"), "\(said)")
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
