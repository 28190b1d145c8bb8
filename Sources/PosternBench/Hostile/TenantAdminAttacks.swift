import Base
import Messages
import Wire

/// Costly requests that a tenant's admin can make: secrets of a megabyte, templates that grow, claims without end,
/// whole listings, settings that change all the time.
struct TenantAdminFlood: Attack {
    let name = "tenant-admin: costly requests"
    let scene: HostileScene

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileAdmin
        let connection = try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.4")
        let requests = Self.requests(party.tenantID)
        try connection.flood(inFlight: 16, answers, until: isOver) { call, stream, buffer in
            let (service, method, message) = requests[call % requests.count]
            buffer.appendRequest(stream: stream, service: service, method: method) {
                $0.append(contentsOf: message)
            }
        }
    }

    private static func requests(_ tenantID: Text) -> [(service: Text, method: Text, message: [UInt8])] {
        var secret = EmailConfigsUpdateRequest(tenantID: tenantID)
        secret.config = EmailConfig()
        secret.config?.smtp = SmtpConfig(host: "mail.hostile.example", port: 587, username: "hostile")
        secret.config?.smtp?.password = Secret([UInt8](repeating: 0x78, count: 1 << 20 | 1))
        secret.updateMask = ProtobufFieldMask(paths: ["smtp"])
        var growing = EmailConfigsUpdateRequest(tenantID: tenantID)
        growing.config = EmailConfig()
        let text = Text((0..<80).map { _ in "%LINK%" }.joined())
        growing.config?.templates = [EmailTemplate(requestType: .emailSignin, subject: "s", text: text, html: text)]
        growing.updateMask = ProtobufFieldMask(paths: ["templates"])
        var settings = TenantsUpdateRequest(tenantID: tenantID, tenant: Tenant())
        settings.tenant?.displayName = "Hostile"
        settings.updateMask = ProtobufFieldMask(paths: ["display_name"])
        var claims = [UInt8]("{\"sub\":\"x\"".utf8)
        for number in 0..<200_000 { claims += Array(",\"c\(number)\":1".utf8) }
        claims.append(UInt8(ascii: "}"))
        let explain = UsersExplainLinkRequest(tenantID: tenantID, providerID: "oidc.hostile", claimsJSON: claims)
        return [
            ("postern.v1.EmailConfigs", "Update", secret.encoded()),
            ("postern.v1.EmailConfigs", "Update", growing.encoded()),
            ("postern.v1.Tenants", "Update", settings.encoded()),
            ("postern.v1.Users", "ExplainLink", explain.encoded()),
            ("postern.v1.Users", "List", UsersListRequest(tenantID: tenantID, pageSize: 1_000).encoded()),
        ]
    }
}

/// Imports of as many users as a batch may have, on as many streams as a connection may have, again and again.
struct ImportFlood: Attack {
    let name = "tenant-admin: imports"
    let scene: HostileScene

    private static let usersPerBatch = 500
    private static let inFlight = 64

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileAdmin
        let connection = try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.4")
        let batches = (0..<Self.inFlight).map { Self.batch($0, party.tenantID) }
        try connection.flood(inFlight: Self.inFlight, answers, until: isOver) { call, stream, buffer in
            buffer.appendRequest(stream: stream, kind: .remoteOpen, service: "postern.v1.Users", method: "Import") {
                $0.append(contentsOf: batches[call % batches.count])
            }
            buffer.appendDataEnd(stream: stream)
        }
    }

    private static func batch(_ number: Int, _ tenantID: Text) -> [UInt8] {
        var request = UsersImportRequest(tenantID: tenantID, onConflict: .replace)
        request.users = (0..<usersPerBatch).map { user in
            ImportUser(uid: Text("i\(number)-\(user)"), email: Text("i\(number)-\(user)@hostile.example"))
        }
        return request.encoded()
    }
}

/// Forty users whose imported password hashes cost as much as an import allows, then all of them sign in, again and
/// again.
struct CostlyHashes: Attack {
    let name = "tenant-admin: costly hashes"
    let scene: HostileScene

    /// Memory in KiB and passes of argon2id, the most costly first; the first that the server takes is used.
    private static let costs = [(262_144, 10), (65_536, 10), (65_536, 4), (47_104, 1), (19_456, 2)]
    private static let userCount = 40

    init(scene: HostileScene) { self.scene = scene }

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileAdmin
        let connection = try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.4")
        guard let cost = try Self.costs.first(where: { try Self.imports(cost: $0, party, connection) }) else {
            return answers.note("no import was taken")
        }
        answers.note("imported with m=\(cost.0),t=\(cost.1)")
        try connection.flood(inFlight: Self.userCount, answers, until: isOver) { call, stream, buffer in
            let request = AccountsSignInWithPasswordRequest(
                tenantID: party.tenantID, email: Self.email(call % Self.userCount), password: Secret("wrong password"))
            buffer.appendRequest(stream: stream, service: "postern.v1.Accounts", method: "SignInWithPassword") {
                request.encode(into: &$0)
            }
        }
    }

    private static func email(_ number: Int) -> Text { Text("costly\(number)@hostile.example") }

    private static func imports(
        cost: (memory: Int, passes: Int), _ party: HostileScene.Party, _ connection: Connection
    ) throws -> Bool {
        // Any salt and tag will do: checking a password against them costs what the parameters say.
        let hash =
            "$argon2id$v=19$m=\(cost.memory),t=\(cost.passes),p=1$c2FsdHNhbHRzYWx0$"
            + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        var request = UsersImportRequest(tenantID: party.tenantID)
        request.onConflict = .replace
        request.spec = PasswordHashSpec(algorithm: .argon2id(Argon2idSpec()))
        request.users = (0..<userCount).map { number in
            var user = ImportUser()
            user.uid = Text("costly\(number)")
            user.email = email(number)
            user.passwordHash = Secret(hash)
            return user
        }
        guard let stream = connection.takeStream() else { return false }
        connection.output.appendRequest(
            stream: stream, kind: .remoteOpen, service: "postern.v1.Users", method: "Import"
        ) { request.encode(into: &$0) }
        connection.output.appendDataEnd(stream: stream)
        try connection.flush()
        var isTaken = false
        try connection.nextResult { _, result in
            if case .ok(let message) = result {
                isTaken = try UsersImportResponse(decoding: message).rejections.isEmpty
            }
        }
        return isTaken
    }
}

/// Cheap requests without a pause on many connections, as many at once as their sockets hold. The answers are thrown
/// away.
struct PipelinedReads: Attack {
    let name = "tenant-admin: pipelined reads"
    let scene: HostileScene

    private static let connectionCount = 200
    private static let outputByteCountMin = 64 * 1024

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileAdmin
        var connections: [Connection] = []
        for _ in 0..<Self.connectionCount where !isOver() {
            connections.append(
                try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.8"))
        }
        let request = UsersGetRequest(tenantID: party.tenantID, uid: "nobody")
        while !isOver() {
            for connection in connections where !isOver() {
                while connection.output.readableByteCount < Self.outputByteCountMin,
                    let stream = connection.takeStream()
                {
                    connection.output.appendRequest(stream: stream, service: "postern.v1.Users", method: "Get") {
                        request.encode(into: &$0)
                    }
                }
                if case .bytes = connection.send() { answers.note("sent") }
                guard case .wouldBlock = Self.discard(connection) else {
                    throw BenchError(.failed, "closed by the server")
                }
            }
        }
    }

    /// Reads what the server sent, until there is no more or the server closed the connection.
    private static func discard(_ connection: Connection) -> Transfer {
        while true {
            let transfer = connection.receive()
            connection.input.consume(connection.input.readableByteCount)
            guard case .bytes(let count) = transfer, count > 0 else { return transfer }
        }
    }
}

/// The same by gRPC: each connection always has as many calls under way as the server lets it have.
struct PipelinedGRPCReads: Attack {
    /// A connection, and its calls that are not answered.
    private struct Link {
        let connection: GRPCConnection
        var inFlight = 0
    }

    let name = "tenant-admin: pipelined reads by gRPC"
    let scene: HostileScene

    private static let connectionCount = 50
    private static let inFlightMax = 256

    init(scene: HostileScene) { self.scene = scene }

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileAdmin
        var links: [Link] = []
        for _ in 0..<Self.connectionCount where !isOver() {
            links.append(
                Link(
                    connection: try GRPCConnection(
                        to: scene.grpcAddress, authorization: party.authorization, from: "127.0.0.9")))
        }
        let request = UsersGetRequest(tenantID: party.tenantID, uid: "nobody")
        while !isOver() {
            for index in links.indices where !isOver() { try Self.goOn(&links[index], request, answers) }
        }
    }

    private static func goOn(_ link: inout Link, _ request: UsersGetRequest, _ answers: Answers) throws {
        let connection = link.connection
        while link.inFlight < min(connection.streamsMax, inFlightMax), let stream = connection.takeStream() {
            connection.output.appendRequest(stream: stream, service: "postern.v1.Users", method: "Get") {
                request.encode(into: &$0)
            }
            link.inFlight += 1
        }
        if connection.hasOutput, case .bytes = connection.send() { answers.note("sent") }
        switch connection.receive() {
        case .bytes(0), .failed: throw BenchError(.failed, "closed by the server")
        case .bytes, .wouldBlock: break
        }
        var answeredCount = 0
        connection.takeFrames { header, _ in
            if header.type == .response { answeredCount += 1 }
        }
        link.inFlight -= answeredCount
    }
}
