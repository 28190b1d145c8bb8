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
            providers: [ProviderInfo(providerID: "google.com", rawID: "g", email: "ada@gmail.com")],
            createdAtMicros: 5, lastSignInAtMicros: 6),
        tokens: TokenSet(
            idToken: "i", refreshToken: "r", lifetime: .hours(1),
            asked: Moment(monotonic: Instant(nanoseconds: 0), wall: Timestamp(seconds: 7))),
        attempt: RefreshAttempt(id: Array(0..<16), refreshToken: "r"), tenantID: "acme")

    @Test func `What is saved is what is read again`() throws {
        #expect(try SavedState(Self.state.encoded(), tenantID: "acme") == Self.state)
        var without = Self.state
        without.attempt = nil
        #expect(try SavedState(without.encoded(), tenantID: "acme") == without)
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
            #expect(access("\(storage.path).new", F_OK) != 0)
            try storage.remove()
            try storage.remove()
            #expect(try storage.load() == nil)
        }
    }

    @Test func `A left-over of a crash is replaced, whatever its mode, and a link is not followed`() throws {
        try withTemporaryDirectory { directory in
            let storage = FileStorage(path: "\(directory)/auth.json")
            let target = "\(directory)/target"
            #expect(symlink(target, "\(storage.path).new") == 0)
            try storage.save([1])
            #expect(access(target, F_OK) != 0)
            let leftOver = open("\(storage.path).new", O_CREAT | O_WRONLY, 0o666)
            fchmod(leftOver, 0o666)
            close(leftOver)
            try storage.save([2])
            var status = stat()
            #expect(stat(storage.path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
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
            #expect(unwritable?.message == "create \(directory)/no/auth.json.new: No such file or directory")
            let occupied = FileStorage(path: directory)
            let taken = refusal { () throws(AuthStorageError) in try occupied.save([1]) }
            #expect(taken?.kind == .unwritable)
            #expect(access("\(directory).new", F_OK) != 0)
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
                #expect(errors.elements.map(\.kind) == [.unwritable])
                _ = try await user.idToken(forcingRefresh: true)

                let broken = BreakableStorage()
                let stuck = try application.auth(storage: broken)
                try await stuck.signIn(withEmail: "ada@example.com", password: password)
                broken.isBroken.store(true, ordering: .relaxed)
                for _ in 0..<2 {
                    let refusal = try await error { () throws(AuthError) in try await stuck.signOut() }
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

/// Takes nothing while it is broken.
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

/// What `body` throws. Closures stay outside of `#expect`: Swift 6.3 may run one for another there.
private func refusal(_ body: () throws(AuthStorageError) -> Void) -> AuthStorageError? {
    do throws(AuthStorageError) {
        try body()
        return nil
    } catch {
        return error
    }
}
