import Base
import Glibc
import Store

/// The actions of posternd on a data directory, and who may run them.
///
/// | action | use | as root on another user's directory | files that it may make there |
/// |---|---|---|---|
/// | serve, `--cluster-init` | `making` | refused | the directory, and all files of a store |
/// | `--restore-backup` | `making` | refused | the directory, `lock`, `restore.new`, and what takes its place |
/// | `--recover-admin`, `--accept-rollback`, `--cluster-leave` | `changing` | refused | files beside `data.mdb` |
/// | `--cluster-rejoin` | `changing` | refused | files beside `data.mdb`, `join.new`, and what takes its place |
/// | `--check-restore` | `reading` | refused, because the restore would be | none |
/// | `--verify-store`, `--check-backup` | `reading` | may run | none |
/// | `--print-config`, `--version`, `--help` | | may run | none |
extension Invocation.Action {
    /// Nil: the action does not look at the data directory.
    var directoryUse: DirectoryUse? {
        switch self {
        case .serve, .beginCluster, .restoreBackup: .making
        case .recoverAdmin, .acceptRollback, .leaveCluster, .rejoinCluster: .changing
        case .verifyStore, .checkBackup, .checkRestore: .reading
        case .printConfiguration, .version, .help: nil
        }
    }

    /// Whether the directory's owner has to run it: its files are for the server, or those of the next action are.
    fileprivate var isForOwner: Bool {
        switch self {
        case .checkRestore: true
        default: directoryUse == .changing || directoryUse == .making
        }
    }
}

extension DataDirectory {
    /// Refuses an action of root on the directory of another user, whose server could not open the files that root
    /// makes. Anybody else is kept away by the modes of the files.
    func admit(_ action: Invocation.Action) throws {
        guard geteuid() == 0, action.isForOwner, owner != 0 else { return }
        throw ConfigurationError(
            description:
                "\(path): belongs to user \(owner), whose server could not open the files that root makes; run "
                + "the command as that user: sudo -u '#\(owner)' … If the server is to run as root, give root the "
                + "directory: chown -R 0 \(path)")
    }

    /// The user whose server uses the directory. If there is a store, its files decide. If not, it is the user for whom
    /// one can be meant: the owner of the directory, or of the master key that was put there.
    private var owner: uid_t {
        let ofStore = ["data.mdb", "witness"].compactMap { Files.owner(of: "\(path)/\($0)") }
        if let owner = ofStore.first { return owner }
        let others = [Files.owner(ofDirectory: path), Files.owner(of: "\(path)/master-key")]
        return others.compactMap { $0 }.first { $0 != 0 } ?? 0
    }

    /// Names the file that keeps this process away, and the way out; nil if there is none.
    var closedFile: String? {
        let files = ["lock", "lock.mdb", "data.mdb", "witness"].map { "\(path)/\($0)" }
        for mode in [R_OK, R_OK | W_OK] {
            if let owner = Files.owner(ofDirectory: path), access(path, mode | X_OK) != 0 {
                return Self.advice(on: path, of: owner)
            }
            for file in files {
                guard let owner = Files.owner(of: file), access(file, mode) != 0 else { continue }
                return Self.advice(on: file, of: owner)
            }
        }
        return nil
    }

    private static func advice(on file: String, of owner: uid_t) -> String {
        "\(file): belongs to user \(owner), and this process, of user \(geteuid()), may not open it. Run it as that "
            + "user; if the file is not the server's by mistake, give it back: chown \(geteuid()) \(file)"
    }
}
