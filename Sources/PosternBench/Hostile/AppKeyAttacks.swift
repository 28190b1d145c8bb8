import Base
import Messages
import Wire

/// Everything one app key can ask for on behalf of end users, mixed, as fast as the server answers: accounts, mails,
/// guesses, repeated requests under keys of their own.
struct AppKeyFlood: Attack {
    let name = "app key: mixed flood"
    let scene: HostileScene
    let numbers: FreshNumbers

    private static let kinds = 7

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileApp
        let connection = try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.2")
        try connection.flood(inFlight: 64, answers, until: isOver) { call, stream, buffer in
            append(call % Self.kinds, party.tenantID, stream, &buffer)
        }
    }

    private func append(_ kind: Int, _ tenantID: Text, _ stream: UInt32, _ buffer: inout ByteBuffer) {
        let number = numbers.take()
        let email = Text("h\(number)@hostile.example")
        switch kind {
        case 0:
            let password = Secret(UserName.password.bytes)
            add("SignUp", AccountsSignUpRequest(tenantID: tenantID, email: email, password: password), stream, &buffer)
        case 1: add("SignUp", AccountsSignUpRequest(tenantID: tenantID), stream, &buffer)
        case 2, 3:
            var request = AccountsSendOobCodeRequest(tenantID: tenantID)
            request.requestType = kind == 2 ? .emailSignin : .passwordReset
            request.email = email
            request.continueURL = Text("https://hostile.example/" + String(repeating: "c", count: 1_900))
            add("SendOobCode", request, stream, &buffer)
        case 4:
            let guess = Secret(Text("guess-\(number)").bytes)
            add(
                "SignInWithPassword",
                AccountsSignInWithPasswordRequest(tenantID: tenantID, email: "one@hostile.example", password: guess),
                stream, &buffer)
        case 5:
            let request = AccountsSignUpRequest(tenantID: tenantID)
            Text("key-\(number)").bytes.withUnsafeBytes { key in
                add("SignUp", request, metadata: OutgoingMetadata(idempotencyKey: key), stream, &buffer)
            }
        default:
            add("CreateAuthUri", AccountsCreateAuthUriRequest(tenantID: tenantID, identifier: email), stream, &buffer)
        }
    }

    private func add(
        _ method: Text, _ request: some Message, metadata: OutgoingMetadata = OutgoingMetadata(), _ stream: UInt32,
        _ buffer: inout ByteBuffer
    ) {
        buffer.appendRequest(stream: stream, service: "postern.v1.Accounts", method: method, metadata: metadata) {
            request.encode(into: &$0)
        }
    }
}

/// Passwords of a megabyte, made of combining marks in the order that costs a normaliser most.
struct LongPasswords: Attack {
    let name = "app key: passwords of 1 MB"
    let scene: HostileScene

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileApp
        let marks = [UInt8]("\u{301}\u{316}".utf8)
        let password = Secret((0..<250_000).flatMap { _ in marks })
        let request = AccountsSignInWithPasswordRequest(
            tenantID: party.tenantID, email: "one@hostile.example", password: password)
        let connection = try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.2")
        try connection.flood(inFlight: 2, answers, until: isOver) { _, stream, buffer in
            buffer.appendRequest(stream: stream, service: "postern.v1.Accounts", method: "SignInWithPassword") {
                request.encode(into: &$0)
            }
        }
    }
}

/// Session cookies for one end user, each of which is signed anew and written nowhere.
struct SessionCookies: Attack {
    let name = "app key: session cookies"
    let scene: HostileScene

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileApp
        let connection = try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.2")
        let user = try connection.answer(
            "Accounts", "SignUp", AccountsSignUpRequest(tenantID: party.tenantID), as: AccountsSignUpResponse.self)
        let request = TokensCreateSessionCookieRequest(
            tenantID: party.tenantID, idToken: user.tokens?.idToken ?? .empty)
        try connection.flood(inFlight: 256, answers, until: isOver) { _, stream, buffer in
            buffer.appendRequest(stream: stream, service: "postern.v1.Tokens", method: "CreateSessionCookie") {
                request.encode(into: &$0)
            }
        }
    }
}

/// As many streams as one key can open, each waiting for messages.
struct ManyStreams: Attack {
    let name = "app key: 4,000 streams"
    let scene: HostileScene
    private static let streamsPerConnection = 200
    private static let connectionCount = 20

    init(scene: HostileScene) { self.scene = scene }

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileApp
        let request = TokensWatchRevocationsRequest(tenantID: party.tenantID, heartbeatSeconds: 300)
        var open: [Connection] = []
        for _ in 0..<Self.connectionCount where !isOver() {
            let connection = try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.3")
            for _ in 0..<Self.streamsPerConnection {
                guard let stream = connection.takeStream() else { break }
                connection.output.appendRequest(
                    stream: stream, kind: .remoteClosed, service: "postern.v1.Tokens", method: "WatchRevocations"
                ) { request.encode(into: &$0) }
            }
            try connection.flush()
            for _ in 0..<Self.streamsPerConnection {
                try connection.nextResult { _, result in
                    if case .refused(let reason) = result { answers.note(reason) } else { answers.note("OK") }
                }
            }
            open.append(connection)
        }
        withExtendedLifetime(open) { while !isOver() { pause(microseconds: 50_000) } }
    }
}
