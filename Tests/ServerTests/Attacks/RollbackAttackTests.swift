import Base
import Glibc
import Messages
import TestSupport
import Testing
import Wire

/// The disk returns another data file than was written: an older one, a damaged one, a shorter one. Nobody gets in by
/// it, and the process says what is wrong before it ends.
@Suite struct RollbackAttackTests {
    private static let pageByteCount = 4_096
    private static let faultElsewhere = "the process ends by a fault: a defect, or a damaged data file"

    /// The newest meta page is damaged: LMDB falls back to the transaction before the revocation.
    @Test func aRevokedTokenIsNotAcceptedAfterTheNewestMetaPageWasDamaged() throws {
        try withTemporaryDirectory { directory in
            let data = directory + "/data"
            var server = try Server(data)
            let (token, uid) = try server.signUp()
            _ = try server.client().call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid),
                returning: UsersRevokeTokensResponse.self)
            #expect(try server.refusal(of: token) == "TOKEN_EXPIRED")
            server.process.kill()
            try Self.damageNewestMeta(of: data)

            let refused = try Server.run(data, [])
            #expect(refused.status == 65)
            #expect(refused.said.contains("older than its witness"), "\(refused.said)")
            #expect(refused.said.contains("posternd --accept-rollback"), "\(refused.said)")

            let accepted = try Server.run(data, ["--accept-rollback"])
            #expect(accepted.status == 0)
            #expect(accepted.said.contains("Accepted"), "\(accepted.said)")
            let again = try Server.run(data, ["--accept-rollback"])
            #expect(again.said.contains("nothing to accept"), "\(again.said)")
            server = try Server(data)
            // The revocation is gone, as the operator was told.
            #expect(try server.refusal(of: token) == nil)
            server.process.kill()
            #expect(try Server.run(data, ["--verify-store"]).status == 0)
        }
    }

    /// A backup that is put back is a rollback like any other.
    @Test func aRestoredBackupHasToBeAccepted() throws {
        try withTemporaryDirectory { directory in
            let data = directory + "/data"
            var server = try Server(data)
            server.process.kill()
            let backup = readFile("\(data)/data.mdb") ?? []
            server = try Server(data)
            _ = try server.signUp()
            server.process.kill()
            writeFile("\(data)/data.mdb", backup)
            #expect(try Server.run(data, []).status == 65)
            #expect(try Server.run(data, ["--accept-rollback"]).status == 0)
            server = try Server(data)
            _ = try server.signUp()
            server.process.kill()
        }
    }

    @Test func aSecondServerIsRefusedWithoutTheLockFile() throws {
        try withTemporaryDirectory { directory in
            let data = directory + "/data"
            let server = try Server(data)
            unlink("\(data)/lock")
            let second = try Server.run(data, ["--listen-address", "127.0.0.1:\(try freePort())"])
            #expect(second.status == 1)
            #expect(second.said.contains("another posternd uses it"), "\(second.said)")
            _ = try server.signUp()
            server.process.kill()
        }
    }

    /// Damages each page of a store in one of three ways, then starts a server over it and uses it. The server serves,
    /// or it ends with one of its own statuses and a line that names the file. A signal ends it only after such a line.
    @Test func aDamagedPageEndsTheProcessWithALine() throws {
        try withTemporaryDirectory { directory in
            let data = directory + "/data"
            let made = try Server(data)
            for _ in 0..<10 { _ = try made.signUp() }
            made.process.kill()
            let whole = readFile("\(data)/data.mdb") ?? []
            let witness = readFile("\(data)/witness") ?? []
            var random = SeededRandom.printed()
            var ends: [Int32: Int] = [:]
            for page in 2..<Self.pageCount(whole) {
                let kind = page % 3
                var damaged = whole
                for index in page * Self.pageByteCount..<(page + 1) * Self.pageByteCount {
                    damaged[index] = kind == 0 ? 0 : kind == 1 ? 0xFF : UInt8.random(in: 0...255, using: &random)
                }
                writeFile("\(data)/data.mdb", damaged)
                writeFile("\(data)/witness", witness)
                unlink("\(data)/lock.mdb")
                let status = try Self.use(data)
                ends[status ?? 0, default: 0] += 1
                guard let status else { continue }
                let said = String(decoding: readFile(data + ".log") ?? [], as: UTF8.self)
                let isOfOthers = said.contains(Self.faultElsewhere)
                #expect([1, 65, 70].contains(status) || isOfOthers, "page \(page), kind \(kind): \(status), \(said)")
                #expect(said.contains("data"), "page \(page), kind \(kind): \(said)")
            }
            // No server can go on without the page at the root of its tables.
            #expect(ends[65, default: 0] + ends[70, default: 0] > 0, "ends by status (0: went on serving): \(ends)")
        }
    }

    /// libc and Swift end a process by a signal to its own thread.
    @Test(arguments: [SIGABRT, SIGILL, SIGTRAP, SIGFPE, SIGSEGV, SIGBUS])
    func aFaultOutsideOfTheStoreIsSaidBeforeItsSignalEndsTheProcess(number: Int32) throws {
        try withTemporaryDirectory { directory in
            let data = directory + "/data"
            let server = try Server(data)
            try server.process.sendToMainThread(signal: number)
            #expect(server.process.wait(seconds: 20) == -1)
            let said = String(decoding: readFile(data + ".log") ?? [], as: UTF8.self)
            let line = said.split(separator: "\n").last.map(String.init) ?? ""
            #expect(line.contains(Self.faultElsewhere), "\(said)")
            #expect(line.contains("\"file\":\"\(data)/data.mdb\""), "\(line)")
            #expect(line.hasPrefix("{\"time_micros\":") && line.hasSuffix("}"), "\(line)")
        }
    }

    /// The file of a running server is cut.
    @Test func aFileThatIsCutEndsTheProcessWithALine() throws {
        try withTemporaryDirectory { directory in
            let data = directory + "/data"
            let server = try Server(data)
            for _ in 0..<5 { _ = try server.signUp() }
            #expect(truncate("\(data)/data.mdb", 8_192) == 0)
            let answer = try? server.signUp()
            #expect(answer?.uid == nil)
            #expect(server.process.wait(seconds: 20) == 70)
            let said = String(decoding: readFile(data + ".log") ?? [], as: UTF8.self)
            let line = said.split(separator: "\n").last.map(String.init) ?? ""
            #expect(line.contains("the data file is damaged or was cut"), "\(said)")
            #expect(line.contains("\"file\":\"\(data)/data.mdb\""), "\(line)")
            #expect(line.hasPrefix("{\"time_micros\":") && line.hasSuffix("}"), "\(line)")
            let verified = try Server.run(data, ["--verify-store"])
            #expect(verified.status == 65)
        }
    }

    /// The number of pages in use or free; the file is longer, since it is grown ahead.
    private static func pageCount(_ file: [UInt8]) -> Int {
        let last = [0, 1].map { page in
            file.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: page * pageByteCount + 136, as: UInt64.self) }
        }
        return min(file.count / pageByteCount, Int(last.max() ?? 0) + 1)
    }

    private static func damageNewestMeta(of data: String) throws {
        var file = readFile("\(data)/data.mdb") ?? []
        let numbers = [0, 1].map { page in
            file.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: page * pageByteCount + 144, as: UInt64.self) }
        }
        let newest = numbers[1] > numbers[0] ? 1 : 0
        for index in 0..<8 { file[newest * pageByteCount + 144 + index] = 0 }
        writeFile("\(data)/data.mdb", file)
    }

    /// Starts a server and calls it; returns its exit status, or nil if it goes on and answers.
    private static func use(_ data: String) throws -> Int32? {
        let server = try Server(data, mustServe: false)
        for _ in 0..<2 { _ = try? server.signUp() }
        if let client = try? server.client() {
            _ = try? client.call(
                "postern.v1.Users/List", UsersListRequest(pageSize: 100), returning: UsersListResponse.self)
        }
        let answers = server.answers()
        if server.process.hasEnded { return server.process.endStatus }
        if answers {
            server.process.kill()
            return nil
        }
        let status = server.process.wait(seconds: 60)
        if status == nil { Issue.record("posternd neither answers nor ends") }
        return status
    }
}

/// A posternd over a directory.
private struct Server {
    let process: ChildProcess
    let data: String
    let port: UInt16

    /// Returns when the server serves or, if it need not serve, has ended.
    init(_ data: String, mustServe: Bool = true) throws {
        self.data = data
        self.port = try freePort()
        process = try ChildProcess(
            ChildProcess.built("posternd"),
            [
                "--data-directory", data, "--listen-address", "127.0.0.1:\(port)", "--http-address", "off",
                "--signing-algorithm", "ES256",
            ], output: data + ".log")
        func log() -> String { String(decoding: readFile(data + ".log") ?? [], as: UTF8.self) }
        func serves() -> Bool { log().contains("\"serving\"") }
        let process = process
        try blockUntil("posternd serves or has ended: \(log())") { serves() || process.hasEnded }
        if mustServe, !serves() { Issue.record("posternd does not serve: \(log())") }
    }

    /// Runs a command of posternd to its end.
    static func run(_ data: String, _ arguments: [String]) throws -> (status: Int32?, said: String) {
        let process = try ChildProcess(
            ChildProcess.built("posternd"),
            ["--data-directory", data, "--http-address", "off"] + arguments, output: data + ".said")
        let status = process.wait(seconds: 30)
        return (status, String(decoding: readFile(data + ".said") ?? [], as: UTF8.self))
    }

    func client() throws -> RawClient {
        let client = try RawClient(port: port)
        client.apiKey = try CrashTests.adminKey(data)
        return client
    }

    func signUp() throws -> (token: Text, uid: Text) {
        let email = Text("u\(UInt64.random(in: 0 ... .max))@example.com")
        let made = try client().call(
            "postern.v1.Accounts/SignUp", AccountsSignUpRequest(email: email, password: Secret("secret1")),
            returning: AccountsSignUpResponse.self)
        return (made.tokens?.idToken ?? .empty, made.user?.uid ?? .empty)
    }

    /// Whether the server answers a call, be it with a refusal.
    func answers() -> Bool {
        do {
            _ = try client().call(
                "postern.v1.Project/ServerInfo", ProjectServerInfoRequest(), returning: ProjectServerInfoResponse.self)
            return true
        } catch {
            return error is Failure
        }
    }

    /// Why the token is refused; nil if it is accepted.
    func refusal(of token: Text) throws -> String? {
        do {
            _ = try client().call(
                "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: token),
                returning: TokensVerifyIdTokenResponse.self)
            return nil
        } catch let failure as Failure {
            return failure.reason
        }
    }
}
