import Base
import Messages
import Wire

/// Users.Import over one connection: batches out, an answer for each of them back.
struct ImportStream {
    private static let batchMax = 500
    private static let service: Text = "postern.v1.Users"
    /// Batches sent and not answered: the server reads one while it commits the other.
    private static let batchesInFlight = 2

    private let connection: Connection
    private let stream: UInt32
    private let first: UsersImportRequest
    private let user: (Int) -> ImportUser
    private let answered: () throws -> Void
    /// Bytes of DATA the server will still take; one message may go over it.
    private var credit: Int

    /// Imports `count` users. Users that exist stay as they are. Returns how many were new.
    static func importUsers(_ count: Int, tenantID: Text, over connection: Connection) throws -> Int {
        let first = UsersImportRequest(tenantID: tenantID, onConflict: .skip)
        return try importUsers(count, first: first, over: connection, user: user)
    }

    /// `first` has the other fields of the first batch; `answered` is called after each batch.
    static func importUsers(
        _ count: Int, first: UsersImportRequest, over connection: Connection, user: @escaping (Int) -> ImportUser,
        answered: @escaping () throws -> Void = {}
    ) throws -> Int {
        guard let stream = connection.takeStream() else { throw BenchError(.failed, "the stream ids are used up") }
        let initialWindow = Int(connection.server.initialWindow)
        var importing = ImportStream(
            connection: connection, stream: stream, first: first, user: user, answered: answered,
            credit: initialWindow == 0 ? 64 * 1024 : initialWindow)
        return try importing.run(count)
    }

    private mutating func run(_ count: Int) throws -> Int {
        let batchCount = (count + Self.batchMax - 1) / Self.batchMax
        var sent = 0
        var answered = 0
        var created = 0
        while answered < batchCount {
            while sent < batchCount, sent - answered < Self.batchesInFlight, credit > 0 {
                let numbers = sent * Self.batchMax..<min(count, (sent + 1) * Self.batchMax)
                var batch = sent == 0 ? first : UsersImportRequest()
                batch.users = numbers.map(user)
                send(batch, isFirst: sent == 0)
                sent += 1
            }
            try connection.flush()
            guard let answer = try receive() else { continue }
            answered += 1
            created = Int(answer.createdCount)  // of the whole stream so far
            try self.answered()
            if let rejection = answer.rejections.first {
                throw BenchError(.failed, "import of \(rejection.uid): \(rejection.reason): \(rejection.message)")
            }
        }
        connection.output.appendDataEnd(stream: stream)
        try connection.flush()
        return created
    }

    /// The first message is the REQUEST's own; windows are about DATA only.
    private mutating func send(_ message: UsersImportRequest, isFirst: Bool) {
        if isFirst {
            connection.output.appendRequest(
                stream: stream, kind: .remoteOpen, service: Self.service, method: "Import"
            ) { message.encode(into: &$0) }
            return
        }
        let before = connection.output.readableByteCount
        connection.output.appendData(stream: stream) { message.encode(into: &$0) }
        credit -= connection.output.readableByteCount - before
    }

    /// The next batch's answer; nil when another frame came.
    private mutating func receive() throws -> UsersImportResponse? {
        var outcome: Result<UsersImportResponse?, BenchError> = .success(nil)
        var granted = 0
        try connection.readFrame { header, payload in
            guard header.stream == stream else { return }
            if header.type == .window {
                granted = Int((try? WireWindow(decoding: payload))?.credit ?? 0)
                return
            }
            switch Connection.result(header, payload) {
            case .ok(let message):
                guard let response = try? UsersImportResponse(decoding: message) else {
                    outcome = .failure(BenchError(.failed, "import: MALFORMED_ANSWER"))
                    return
                }
                outcome = .success(response)
                let cost = UInt32(FrameHeader.byteCount + payload.count)
                ControlFrame.window(stream: stream, credit: cost).append(to: &connection.output)
            case .refused(let reason): outcome = .failure(BenchError(.failed, "import: \(reason)"))
            case nil: break
            }
        }
        credit += granted
        return try outcome.get()
    }

    /// About as much as an account that signs in with an identity provider holds.
    private static func user(_ number: Int) -> ImportUser {
        var user = ImportUser()
        user.uid = UserName.uid(number)
        user.email = UserName.email(number)
        user.emailVerified = true
        user.displayName = Text("Bench User \(number)")
        user.photoURL = Text("https://photos.bench.example/users/\(number)/portrait.jpg")
        user.providers = [
            ProviderInfo(
                providerID: "google.com", rawID: Text(String(100_000_000_000_000_000 + number)), email: user.email,
                displayName: user.displayName, photoURL: user.photoURL)
        ]
        return user
    }
}
