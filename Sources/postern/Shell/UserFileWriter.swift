import Base
import JSON
import Messages

/// Writes users in one of the formats, and counts the data that has no place in it.
struct UserFileWriter {
    let format: UserFileFormat
    /// The algorithm of the hashes that a Firebase file is to hold; such a file does not say how they were made.
    let algorithm: HashAlgorithm?
    private(set) var state: State

    /// The knowledge about the lines that were written. Who writes the rest of a file later needs it.
    struct State: Equatable {
        /// The specs that the file has, or whose hashes it has.
        var specNames: Set<Text> = []
        /// The flags of user import for the hashes of a Firebase file.
        var parameters: [String] = []
        var hashesLeftOut = 0
        var providersLeftOut = 0
    }

    init(format: UserFileFormat, algorithm: HashAlgorithm?, state: State = State()) {
        (self.format, self.algorithm, self.state) = (format, algorithm, state)
    }

    private static let firebaseProviders: Set<Text> = Set(FirebaseCSV.providers.map(\.id))

    func begin(tenantID: Text) -> [UInt8] {
        switch format {
        case .ndjson: UserLines.header(tenantID: tenantID)
        case .firebaseJSON: [UInt8]("{\"users\": [\n".utf8)
        case .firebaseCSV: []
        }
    }

    /// The end of a file of so many users.
    func end(userCount: Int64) -> [UInt8] {
        switch format {
        case .ndjson: UserLines.end(userCount: userCount)
        case .firebaseJSON: [UInt8]("]}".utf8)
        case .firebaseCSV: []
        }
    }

    /// Returns a line for the spec, or keeps a note for the end. An export that goes on gets its specs once more; an
    /// import takes each only once.
    mutating func lines(of named: NamedHashSpec) -> [UInt8] {
        guard !state.specNames.contains(named.name) else { return [] }
        guard format != .ndjson else {
            state.specNames.insert(named.name)
            return UserLines.line(named)
        }
        guard let algorithm, let spec = named.spec, HashAlgorithm(of: spec) == algorithm else { return [] }
        let isText = ["argon2id", "bcrypt"].contains(algorithm.name)
        // One set of flags describes all hashes of a file.
        guard isText || state.specNames.isEmpty else { return [] }
        state.specNames.insert(named.name)
        if !isText, let flags = HashAlgorithm.flags(of: spec) { state.parameters.append(flags) }
        return []
    }

    mutating func line(_ user: ImportUser, isFirst: Bool) -> [UInt8] {
        guard format != .ndjson else { return UserLines.line(user) }
        let hasHash = state.specNames.contains(user.hashSpec) && !user.passwordHash.isEmpty
        if !hasHash, !user.passwordHash.isEmpty { state.hashesLeftOut += 1 }
        let hash = hasHash ? user.passwordHash.withBytes { [UInt8]($0) } : []
        state.providersLeftOut += user.providers.count { provider in
            !["password", "phone"].contains(provider.providerID)
                && !Self.firebaseProviders.contains(provider.providerID)
        }
        guard format == .firebaseJSON else {
            return FirebaseCSV.line(user, hash: hash, salt: hasHash ? user.salt : [])
        }
        let json = Self.json(user, hash: hash, salt: hasHash ? user.salt : []).prettyPrinted()
        return isFirst ? json : [UInt8](",\n".utf8) + json
    }

    /// The facts that the reader of the file has to know.
    var notes: [String] {
        var notes = state.parameters.map { "the hashes were made with \($0)" }
        if state.hashesLeftOut > 0 {
            notes.append("\(state.hashesLeftOut) password hashes of other algorithms were left out")
        }
        if state.providersLeftOut > 0 {
            notes.append(
                "\(state.providersLeftOut) identities of providers that Firebase does not export were left out")
        }
        return notes
    }

    /// The user in the order of firebase-tools, without empty fields. Times are milliseconds in a string.
    private static func json(_ user: ImportUser, hash: [UInt8], salt: [UInt8]) -> JSONValue {
        var members: [JSONValue.Member] = []
        func add(_ name: Text, _ value: Text) {
            if !value.isEmpty { members.append(.init(name, .string(value))) }
        }
        func milliseconds(_ micros: Int64) -> Text { micros == 0 ? .empty : Text("\(micros / 1_000)") }
        add("localId", user.uid)
        add("email", user.email)
        if !user.email.isEmpty { members.append(.init("emailVerified", .bool(user.emailVerified))) }
        add("passwordHash", Text(unchecked: Base64.standard.encode(hash)))
        add("salt", Text(unchecked: Base64.standard.encode(salt)))
        add("displayName", user.displayName)
        add("photoUrl", user.photoURL)
        add("lastSignedInAt", milliseconds(user.lastSignInAtMicros))
        add("createdAt", milliseconds(user.createdAtMicros))
        add("phoneNumber", user.phoneNumber)
        if user.disabled { members.append(.init("disabled", .bool(true))) }
        add("customAttributes", Text(unchecked: user.customClaimsJSON))
        let factors = user.secondFactors.compactMap(\.factor).filter { $0.kind == .phone }.map(json)
        if !factors.isEmpty { members.append(.init("mfaInfo", .array(factors))) }
        let known = user.providers.filter { firebaseProviders.contains($0.providerID) }.map(json)
        members.append(.init("providerUserInfo", .array(known)))
        return .object(members)
    }

    private static func json(_ factor: SecondFactor) -> JSONValue {
        [
            "mfaEnrollmentId": .string(factor.factorID), "displayName": .string(factor.displayName),
            "phoneInfo": .string(factor.phoneNumber),
            "enrolledAt": .string(Text(Timestamp(microseconds: factor.enrolledAtMicros).rfc3339)),
        ]
    }

    private static func json(_ provider: ProviderInfo) -> JSONValue {
        let fields: [(Text, Text)] = [
            ("providerId", provider.providerID), ("rawId", provider.rawID), ("email", provider.email),
            ("displayName", provider.displayName), ("photoUrl", provider.photoURL),
        ]
        return .object(fields.filter { !$0.1.isEmpty }.map { .init($0.0, .string($0.1)) })
    }
}
