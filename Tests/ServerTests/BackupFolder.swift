import Base
import Crypto
import Glibc
import Messages
import TestSupport

/// A directory of backups, and the data directory of a server that is to write there. The test knows its master key.
struct BackupFolder {
    /// The directory that holds both.
    let directory: String
    let masterKey = MasterKey.generate(random: .system)

    var data: String { "\(directory)/data" }
    var backups: String { "\(directory)/backups" }

    /// Makes both in `directory`.
    init(in directory: String) {
        self.directory = directory
        for path in [data, backups] { mkdir(path, 0o700) }
        BackupTests.write(masterKey, to: "\(data)/master-key")
    }

    static func name(_ number: Int) -> String { "postern-00000\(number)-20200101T000000Z.backup" }

    /// The path under which the server with this master key writes a backup, from the directory's slash on.
    var unfinishedEnd: String {
        let mark = Hex.encode(Digest.sha256(masterKey.id + [UInt8]("postern".utf8)).prefix(16))
        return "/unfinished-\(mark).new"
    }

    /// Puts the beginning of a backup there: that of the server whose directory this is, unless another master key or
    /// project is given. It is as old as `age` says, in seconds.
    func add(_ number: Int, masterKey: MasterKey? = nil, projectID: Text = "postern", age: Int = 86_400 * 365) {
        let header = BackupHeader(
            formatVersion: 1, projectID: projectID, masterKeyID: (masterKey ?? self.masterKey).id
        ).encoded()
        // The length of the header has eight bytes, the last one of which is enough.
        let length = [UInt8](repeating: 0, count: 7) + [UInt8(truncatingIfNeeded: header.count)]
        add(number, content: [UInt8]("PSTNBAK1".utf8) + length + header, age: age)
    }

    /// Puts a file there that has the name of a backup.
    func add(_ number: Int, content: [UInt8], age: Int = 0) {
        writeFile("\(backups)/\(Self.name(number))", content)
        setAge(age, of: Self.name(number))
    }

    /// Makes a file look as old as `age` says, in seconds.
    func setAge(_ age: Int, of name: String) {
        let made = time(nil) - age
        var times = [timespec(tv_sec: made, tv_nsec: 0), timespec(tv_sec: made, tv_nsec: 0)]
        utimensat(AT_FDCWD, "\(backups)/\(name)", &times, 0)
    }

    /// The names of the complete backups, sorted. Nil while one is written.
    var complete: [String]? {
        let names = fileNames(in: backups)
        let own = String(unfinishedEnd.dropFirst())
        return names.contains(own) ? nil : names.filter { $0.hasSuffix(".backup") }.sorted()
    }
}
