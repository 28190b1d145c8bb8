import Base
import Glibc
import JSON
import Messages
import PosternClient

/// postern user verify-hash: tries the parameters of an import with one user whose password is known.
enum UserVerifyHash {
    static let command = Command(
        path: ["user", "verify-hash"], methods: ["Users/VerifyHashSpec"],
        summary: "Tries with one user of a file whether its passwords were hashed as you think; imports nothing.",
        example: "-t acme user verify-hash users.json u1 --hash-algo sha256 --password-file pw",
        operands: [.required("file|-"), .required("uid|email")],
        flags: [
            Flag("format", "FORMAT", "ndjson, firebase-json or firebase-csv; default: by the file's name"),
            Flag("hash-algo", "ALGO", "how the passwords are hashed, as for user import"),
            UserCommands.passwordFileFlag,
        ] + HashAlgorithm.parameterFlags, isReadOnly: true
    ) { session in
        let spec = try session.arguments.value("hash-algo").map { try HashAlgorithm(named: $0).spec(session) }
        let (path, name) = (session.arguments.operands[0], Text(session.arguments.operands[1]))
        let (user, named) = try find(name, session, path: path)
        guard !user.passwordHash.isEmpty else { throw CommandError("\(name) has no password in \(path)") }
        guard let spec = named ?? spec else {
            throw CommandError.usage("say how the password is hashed with --hash-algo")
        }
        let request = UsersVerifyHashSpecRequest(
            tenantID: try session.tenantID(), password: try session.password("Password of \(name): "),
            passwordHash: user.passwordHash, salt: user.salt, spec: spec)
        let client = UsersClient(channel: try session.channel())
        let answer = try await client.verifyHashSpec(request, options: session.callOptions())
        session.output.print(HashTrial(uid: user.uid, answer: answer))
        guard answer.matches else {
            throw CommandError(
                answer.matching.isEmpty
                    ? "the hash is not of this password, or was made in another way"
                    : "the hash was made in another way: see matching", exitCode: .notFound)
        }
    }

    /// The user, and the spec that the file itself has for it.
    private static func find(
        _ name: Text, _ session: Session, path: String
    ) throws -> (ImportUser, PasswordHashSpec?) {
        let descriptor = path == "-" ? STDIN_FILENO : try File.open(path)
        let format = try UserImport.format(session, path: path)
        var source = format.source { try File.readChunk(descriptor: descriptor, name: path) }
        var specs: [Text: PasswordHashSpec] = [:]
        while let item = try source.next() {
            switch item {
            case .hashSpec(let named): specs[named.name] = named.spec
            case .user(let user, _) where user.uid == name || user.email == name:
                return (user, user.hashSpec.isEmpty ? nil : specs[user.hashSpec])
            case .rejected(let rejection) where rejection.uid == name:
                throw CommandError("\(name): \(rejection.message) [\(rejection.reason)]")
            case .user, .rejected: break
            }
        }
        throw CommandError("there is no user \(name) in \(path)", exitCode: .notFound)
    }
}

/// The result of a trial, in the words of the import's flags.
private struct HashTrial: Record {
    static let columns = ["uid", "matches", "tried", "matching"]

    let uid: Text
    let answer: UsersVerifyHashSpecResponse

    var id: String { answer.matches ? uid.string : "" }

    var json: JSONValue {
        [
            "uid": .string(uid), "matches": .bool(answer.matches), "tried": .integer(Int64(answer.triedCount)),
            "matching": .array(answer.matching.map { .string(Text(HashAlgorithm.flags(of: $0) ?? "")) }),
        ]
    }
}
