import Base
import Glibc
import Messages
import Synchronization
import TestSupport
import Testing

@testable import PosternAuth

@Suite struct AuthStorageTests {
    private static let state = SavedState(
        account: Messages.User(
            tenantID: "acme", uid: "u1", email: "ada@example.com", emailVerified: true, displayName: "Ada \"L\"",
            photoURL: "https://e/x", phoneNumber: "+1",
            providers: [
                ProviderInfo(providerID: "google.com", rawID: "g", email: "ada@gmail.com", issuer: "https://e")
            ],
            createdAtMicros: 5, lastSignInAtMicros: 6),
        tokens: TokenSet(
            idToken: idToken(uid: "u1"), refreshToken: "r", lifetime: .hours(1),
            asked: Moment(monotonic: Instant(nanoseconds: 0), wall: Timestamp(seconds: 7))),
        attempt: RefreshAttempt(id: Array(0..<16), refreshToken: "r"), tenantID: "acme")

    /// A text that reads like an ID token; nothing verifies it here.
    private static func idToken(uid: String) -> Text {
        let payload = Base64.url.encode(Array(#"{"sub":"\#(uid)","iat":1,"exp":2}"#.utf8))
        return Text(validating: Array("e30.".utf8) + payload + Array(".s".utf8)) ?? .empty
    }

    @Test func `A record whose uid was altered is damaged`() throws {
        var altered = Self.state
        altered.account.uid = "u2"
        let record = altered.encoded()
        let refused = refusal { () throws(AuthStorageError) in _ = try SavedState(record, tenantID: "acme") }
        #expect(refused?.kind == .damaged)
    }

    @Test func `What is saved is what is read again`() throws {
        #expect(try SavedState(Self.state.encoded(), tenantID: "acme") == Self.state)
        var without = Self.state
        without.attempt = nil
        #expect(try SavedState(without.encoded(), tenantID: "acme") == without)
        let begun = SavedState.encoded(signUpAttempt: Array(0..<16), tenantID: "acme")
        #expect(try SavedState(begun, tenantID: "acme") == nil)
        #expect(SavedState.signUpAttempt(in: begun, tenantID: "acme") == Array(0..<16))
        #expect(SavedState.signUpAttempt(in: begun, tenantID: "beta") == nil)
    }

    @Test func `A record that was cut anywhere is damaged, never misread`() {
        let record = Self.state.encoded()
        for count in 0..<record.count {
            let cut = refusal { () throws(AuthStorageError) in
                _ = try SavedState(Array(record[..<count]), tenantID: "acme")
            }
            #expect(cut?.kind == .damaged)
        }
    }

    @Test func `A record of another tenant or of a newer version is told apart`() {
        let other = refusal { () throws(AuthStorageError) in _ = try SavedState(Self.state.encoded(), tenantID: "beta")
        }
        #expect(other?.kind == .otherTenant)
        let newer = refusal { () throws(AuthStorageError) in
            _ = try SavedState(Array(#"{"version":2}"#.utf8), tenantID: "")
        }
        #expect(newer?.kind == .newerVersion)
    }

    @Test func `A file is its owner's alone, replaced as a whole and removed`() throws {
        try withTemporaryDirectory { directory in
            let storage = FileStorage(path: "\(directory)/auth.json")
            #expect(try storage.load() == nil)
            try storage.save([1, 2, 3])
            try storage.save([4])
            #expect(try storage.load() == [4])
            var status = stat()
            #expect(stat(storage.path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            #expect(try names(in: directory) == ["auth.json", "auth.json.lock"])
            try storage.remove()
            try storage.remove()
            #expect(try storage.load() == nil)
        }
    }

    @Test func `The left-overs of a crash are removed, and a link of a save's name is not followed`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/auth.json"
            let target = "\(directory)/target"
            for suffix in ["abcdef", "ABC123"] { #expect(symlink(target, "\(path).new-\(suffix)") == 0) }
            #expect(symlink(target, "\(path).new-longer-than-ours") == 0)
            let storage = FileStorage(path: path)
            #expect(try storage.load() == nil)
            try storage.save([1])
            #expect(try names(in: directory) == ["auth.json", "auth.json.lock", "auth.json.new-longer-than-ours"])
            #expect(access(target, F_OK) != 0)
        }
    }

    @Test func `A file that another storage uses is left alone, until that one is gone`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/auth.json"
            var first: FileStorage? = FileStorage(path: path)
            try first?.save([1])
            let second = FileStorage(path: path)
            let loading = refusal { () throws(AuthStorageError) in _ = try second.load() }
            #expect(loading?.kind == .inUse)
            let saving = refusal { () throws(AuthStorageError) in try second.save([2]) }
            #expect(saving?.kind == .inUse)
            // The second storage has nothing of its own to remove.
            try second.remove()
            #expect(try first?.load() == [1])
            first = nil
            #expect(try second.load() == [1])
        }
    }

    @Test func `A file that others can use, or that is somebody else's, is not believed`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/auth.json"
            try FileStorage(path: path).save([1])
            for mode: mode_t in [0o640, 0o604, 0o620, 0o602, 0o666] {
                #expect(chmod(path, mode) == 0)
                let refused = refusal { () throws(AuthStorageError) in _ = try FileStorage(path: path).load() }
                #expect(refused?.kind == .exposed)
            }
            #expect(chmod(path, 0o600) == 0)
            #expect(try FileStorage(path: path).load() == [1])
            // The rest needs tests that run as root.
            guard geteuid() == 0, chown(path, 1, 1) == 0 else { return }
            let refused = refusal { () throws(AuthStorageError) in _ = try FileStorage(path: path).load() }
            #expect(refused?.kind == .exposed)
        }
    }

    @Test func `The second of two processes is told, and leaves the first one's user signed in`() async throws {
        try await Application.run { application in
            try await withTemporaryDirectory { directory in
                let path = "\(directory)/auth.json"
                let first = try application.auth(storage: FileStorage(path: path))
                let ada = try await first.createUser(withEmail: "ada@example.com", password: password).user
                let second = try application.auth(storage: FileStorage(path: path))
                #expect(second.currentUser == nil)
                #expect(second.storageError?.kind == .inUse)
                try await second.createUser(withEmail: "bob@example.com", password: password)
                #expect(second.storageError?.kind == .inUse)
                try await second.signOut()
                for _ in 0..<3 { _ = try await ada.idToken(forcingRefresh: true) }
                let record = try #require(try readWhole(path))
                #expect(try SavedState(record, tenantID: "")?.account.uid.string == ada.uid)
            }
        }
    }

    @Test func `What cannot be read or written says which file and why`() throws {
        try withTemporaryDirectory { directory in
            let unreadable = refusal { () throws(AuthStorageError) in _ = try FileStorage(path: directory).load() }
            #expect(unreadable?.kind == .unreadable)
            #expect(unreadable?.message == "read \(directory): Is a directory")
            let storage = FileStorage(path: "\(directory)/no/auth.json")
            let unwritable = refusal { () throws(AuthStorageError) in try storage.save([1]) }
            #expect(unwritable?.kind == .unwritable)
            #expect(unwritable?.message == "create \(directory)/no/auth.json.lock: No such file or directory")
            let occupied = FileStorage(path: directory)
            let taken = refusal { () throws(AuthStorageError) in try occupied.save([1]) }
            #expect(taken?.kind == .unwritable)
            let huge = FileStorage(path: "\(directory)/huge")
            try huge.save([UInt8](repeating: 0x20, count: 1 << 20 | 1))
            let damaged = refusal { () throws(AuthStorageError) in _ = try huge.load() }
            #expect(damaged?.kind == .damaged)
        }
    }

    @Test func `A damaged file is reported once, means signed out, and stays until somebody signs in`() async throws {
        try await Application.run { application in
            try await withTemporaryDirectory { directory in
                let storage = FileStorage(path: "\(directory)/auth.json")
                let damage = Array(#"{"version":1,"tenant_id":"#.utf8)
                try storage.save(damage)
                let errors = Recording<AuthStorageError>()
                let auth = try application.auth(storage: storage, storageErrors: errors)
                #expect(auth.currentUser == nil)
                #expect(auth.storageError?.kind == .damaged)
                try await auth.signOut()
                var changes = auth.authStateChanges.makeAsyncIterator()
                _ = await changes.next()
                #expect(try storage.load() == damage)
                #expect(errors.elements.map(\.kind) == [.damaged])

                try await auth.createUser(withEmail: "ada@example.com", password: password)
                #expect(try storage.load() != damage)
                #expect(auth.storageError == nil)
                #expect(errors.elements.count == 1)
                #expect(try application.auth(storage: storage).currentUser?.uid == auth.currentUser?.uid)
            }
        }
    }

    @Test func `Where nothing can be written, signing in works, the error is reported, and signing out tells`()
        async throws
    {
        try await Application.run { application in
            try await withTemporaryDirectory { directory in
                let storage = FileStorage(path: "\(directory)/no/auth.json")
                let errors = Recording<AuthStorageError>()
                let auth = try application.auth(storage: storage, storageErrors: errors)
                let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
                #expect(auth.currentUser === user)
                #expect(auth.storageError?.kind == .unwritable)
                // One error is of the sign-up that begins, the other of the user.
                #expect(errors.elements.map(\.kind) == [.unwritable, .unwritable])
                _ = try await user.idToken(forcingRefresh: true)

                let broken = BreakableStorage()
                let stuck = try application.auth(storage: broken)
                try await stuck.signIn(withEmail: "ada@example.com", password: password)
                broken.isBroken.store(true, ordering: .relaxed)
                for _ in 0..<2 {
                    let refusal = try await error { try await stuck.signOut() }
                    #expect(refusal.code == .keychainError)
                    #expect(stuck.currentUser == nil)
                }
                #expect(broken.kept.load() != nil)
                broken.isBroken.store(false, ordering: .relaxed)
                try await stuck.signOut()
                #expect(broken.kept.load() == nil)
                #expect(stuck.storageError == nil)
            }
        }
    }
}

/// A storage that takes nothing while it is broken.
private final class BreakableStorage: AuthStorage {
    let isBroken = Atomic(false)
    let kept = InMemoryStorage()

    func load() -> [UInt8]? { kept.load() }

    func save(_ record: [UInt8]) throws(AuthStorageError) {
        try check()
        kept.save(record)
    }

    func remove() throws(AuthStorageError) {
        try check()
        kept.remove()
    }

    private func check() throws(AuthStorageError) {
        if isBroken.load(ordering: .relaxed) { throw AuthStorageError(.unwritable, "no space") }
    }
}

private func names(in directory: String) throws -> [String] {
    let opened = try #require(opendir(directory))
    defer { closedir(opened) }
    var names: [String] = []
    while let entry = readdir(opened) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
}

private func readWhole(_ path: String) throws -> [UInt8]? {
    let descriptor = open(path, O_RDONLY)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = read(descriptor, &bytes, bytes.count)
    return Array(bytes[..<count])
}

/// The error that `body` throws. Closures stay outside of `#expect`: Swift 6.3 may run one for another there.
private func refusal(_ body: () throws(AuthStorageError) -> Void) -> AuthStorageError? {
    do throws(AuthStorageError) {
        try body()
        return nil
    } catch {
        return error
    }
}
