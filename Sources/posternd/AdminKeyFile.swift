import Base
import Glibc
import Identity

/// The file `admin-key` in the data directory: the first project-admin key, readable by the server's user only.
struct AdminKeyFile: SecretKeeper {
    let path: String
    let log: Log

    /// The path of the key until the store has it.
    private var unshownPath: String { "\(path).new" }
    private static let byteCountMax = 256

    func keep(_ secret: Secret) throws { try PrivateFile.replace(unshownPath, with: Self.line(secret)) }

    func kept() throws -> Secret? {
        guard Files.mode(of: unshownPath) != nil else { return nil }
        let bytes = try Files.read(unshownPath, byteCountMax: Self.byteCountMax)
        return Secret(Array(bytes.prefix { $0 != UInt8(ascii: "\n") }))
    }

    /// The log names the path, never the key.
    func show() throws {
        guard rename(unshownPath, path) == 0 else { throw FileError(path: unshownPath, call: "rename", code: errno) }
        try PrivateFile.syncDirectory(of: path)
        log.notice("made the first project-admin API key", ["path": .text(path)])
    }

    func discard() throws {
        guard unlink(unshownPath) == 0 else { throw FileError(path: unshownPath, call: "unlink", code: errno) }
        log.notice("another server made the first project-admin API key", [:])
    }

    static func line(_ key: Secret) -> [UInt8] { key.withBytes { [UInt8]($0) } + [UInt8(ascii: "\n")] }
}
