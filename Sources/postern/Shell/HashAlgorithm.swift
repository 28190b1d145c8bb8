import Base
import Messages

/// The algorithm that hashed the passwords of a Firebase file. Such a file does not name it, so flags do, with the
/// names of firebase-tools.
struct HashAlgorithm: Equatable {
    /// The value of `--hash-algo`, in lower case.
    let name: String

    static let functions: [(name: String, function: PasswordHashFunction)] = [
        ("md5", .md5), ("sha1", .sha1), ("sha256", .sha256), ("sha512", .sha512),
    ]
    /// firebase-tools calls the first one PBKDF_SHA1; it has no third.
    private static let pbkdf2: [(name: String, function: PasswordHashFunction)] = [
        ("pbkdf_sha1", .sha1), ("pbkdf2_sha256", .sha256), ("pbkdf2_sha512", .sha512),
    ]
    static let orders: [(String, PasswordHashOrder)] = [
        ("salt_first", .saltFirst), ("password_first", .passwordFirst),
    ]

    /// The variants by their names in argon2 hashes.
    static let argon2Variants: [(String, Argon2Variant)] = [("argon2d", .d), ("argon2i", .i), ("argon2id", .id)]

    static let names =
        ["scrypt", "standard_scrypt", "bcrypt", "argon2id", "argon2"] + pbkdf2.map(\.name)
        + functions.map { "hmac_\($0.name)" } + functions.map(\.name)

    /// The flags of an import besides `--hash-algo`.
    static let parameterFlags = [
        Flag("hash-key-file", "FILE", "scrypt, hmac_…: holds the signer key in base64"),
        Flag("hash-key", "BASE64", "the signer key itself; it stays in the shell's history"),
        Flag("salt-separator", "BASE64", "scrypt: default Bw=="),
        Flag("rounds", "N", "scrypt: default 8; pbkdf…, md5, sha…: how often the function is applied; argon2: passes"),
        Flag("mem-cost", "N", "scrypt: log2 of N, default 14; standard_scrypt: N; argon2: KiB"),
        Flag("block-size", "N", "standard_scrypt: r"),
        Flag("parallelization", "N", "standard_scrypt: p; argon2: lanes, default 1"),
        Flag("argon2-variant", "VARIANT", "argon2: argon2id (default), argon2i or argon2d"),
        Flag("argon2-version", "N", "argon2: 19 (default) or 16"),
        Flag("associated-data", "BASE64", "argon2: what was hashed beside password and salt, if anything"),
        Flag("dk-len", "BYTES", "standard_scrypt: how long each hash is; rows with others are rejected"),
        Flag("hash-input-order", "ORDER", "hmac_…, md5, sha…: SALT_FIRST or PASSWORD_FIRST (default: Firebase's)"),
        Flag("rounds-over-hex", "md5, sha…: each further round hashes hex digits"),
    ]

    init(named name: String) throws(CommandError) {
        let known = name.lowercased()
        guard Self.names.contains(known) else {
            throw .usage(
                "--hash-algo is one of \(Self.names.joined(separator: ", ")), not \"\(name)\"",
                hint: nearest(to: known, in: Self.names).map { "did you mean \($0)?" })
        }
        self.name = known
    }

    /// Nil for a spec without an algorithm.
    init?(of spec: PasswordHashSpec?) {
        func name(_ function: PasswordHashFunction) -> String? {
            Self.functions.first { $0.function == function }?.name
        }
        let found: String? =
            switch spec?.algorithm {
            case nil: nil
            case .argon2id: "argon2id"
            case .argon2: "argon2"
            case .bcrypt: "bcrypt"
            case .firebaseScrypt: "scrypt"
            case .scrypt: "standard_scrypt"
            case .pbkdf2(let spec): Self.pbkdf2.first { $0.function == spec.function }?.name
            case .hmac(let spec): name(spec.function).map { "hmac_\($0)" }
            case .digest(let spec): name(spec.function)
            }
        guard let found else { return nil }
        self.name = found
    }

    // MARK: Flags

    /// The spec that the flags describe.
    func spec(_ session: Session) throws -> PasswordHashSpec {
        let arguments = session.arguments
        func number(_ flag: String, in range: ClosedRange<Int64>, default standard: Int32?) throws -> Int32 {
            if let value = try arguments.integer(flag, in: range) { return Int32(clamping: value) }
            guard let standard else { throw CommandError.usage("\(name) needs --\(flag)") }
            return standard
        }
        let order = try arguments.choice("hash-input-order", of: Self.orders) ?? .unspecified
        if let function = Self.functions.first(where: { $0.name == name })?.function {
            let rounds = try number("rounds", in: 0...8_192, default: function == .md5 ? 0 : 1)
            return PasswordHashSpec(
                algorithm: .digest(
                    DigestSpec(
                        function: function, rounds: rounds, order: order,
                        roundsOverHex: arguments.isSet("rounds-over-hex"))))
        }
        if let function = Self.functions.first(where: { "hmac_\($0.name)" == name })?.function {
            let key = try signerKey(session)
            return PasswordHashSpec(algorithm: .hmac(HmacSpec(function: function, signerKey: key, order: order)))
        }
        return try spec(session, number)
    }

    /// The spec of an algorithm that is neither a digest nor an HMAC.
    private func spec(
        _ session: Session, _ number: (String, ClosedRange<Int64>, Int32?) throws -> Int32
    ) throws -> PasswordHashSpec {
        if let function = Self.pbkdf2.first(where: { $0.name == name })?.function {
            let rounds = try number("rounds", 1...10_000_000, nil)
            return PasswordHashSpec(algorithm: .pbkdf2(Pbkdf2Spec(function: function, rounds: rounds)))
        }
        switch name {
        case "bcrypt": return PasswordHashSpec(algorithm: .bcrypt(BcryptSpec()))
        case "argon2id": return PasswordHashSpec(algorithm: .argon2id(Argon2idSpec()))
        case "argon2": return PasswordHashSpec(algorithm: .argon2(try argon2(session, number)))
        case "standard_scrypt":
            return PasswordHashSpec(
                algorithm: .scrypt(
                    ScryptSpec(
                        memoryCost: try number("mem-cost", 2...1_048_576, nil),
                        blockSize: try number("block-size", 1...32, nil),
                        parallelization: try number("parallelization", 1...64, nil))))
        default:
            guard let separator = decodeLenientBase64(session.arguments.text("salt-separator") ?? "Bw==") else {
                throw CommandError.usage("--salt-separator is no base64")
            }
            return PasswordHashSpec(
                algorithm: .firebaseScrypt(
                    FirebaseScryptSpec(
                        signerKey: try signerKey(session), saltSeparator: separator,
                        rounds: try number("rounds", 1...8, 8),
                        memoryCost: try number("mem-cost", 1...14, 14))))
        }
    }

    private func argon2(
        _ session: Session, _ number: (String, ClosedRange<Int64>, Int32?) throws -> Int32
    ) throws -> Argon2Spec {
        guard let data = decodeLenientBase64(session.arguments.text("associated-data") ?? "") else {
            throw CommandError.usage("--associated-data is no base64")
        }
        return Argon2Spec(
            variant: try session.arguments.choice("argon2-variant", of: Self.argon2Variants) ?? .id,
            version: try number("argon2-version", 16...19, 19), memoryKib: try number("mem-cost", 8...262_144, nil),
            iterations: try number("rounds", 1...16, nil), parallelism: try number("parallelization", 1...16, 1),
            associatedData: data)
    }

    private func signerKey(_ session: Session) throws -> Secret {
        guard let key = decodeLenientBase64(try signerKeyText(session)) else {
            throw CommandError.usage("the hash key is no base64")
        }
        return Secret(key)
    }

    private func signerKeyText(_ session: Session) throws -> Text {
        if let key = session.arguments.text("hash-key") { return key }
        guard let path = session.arguments.value("hash-key-file") else {
            throw CommandError.usage("\(name) needs --hash-key-file FILE", hint: "the key is in Firebase's console")
        }
        guard let key = Text(validating: Array(try File.read(path).trimmed())) else {
            throw CommandError("\(path): is no text")
        }
        return key
    }

    /// The flags that describe this spec.
    static func flags(of spec: PasswordHashSpec) -> String? {
        guard let algorithm = HashAlgorithm(of: spec) else { return nil }
        func base64(_ bytes: [UInt8]) -> String { Base64.standard.encodeToString(bytes) }
        // A spec from an answer of the server has no key.
        func key(_ key: Secret) -> String {
            key.isEmpty ? " --hash-key-file FILE" : " --hash-key " + base64(key.withBytes { [UInt8]($0) })
        }
        func order(_ order: PasswordHashOrder) -> String {
            orders.first { $0.1 == order }.map { " --hash-input-order \($0.0.uppercased())" } ?? ""
        }
        let parameters: String
        switch spec.algorithm {
        case nil, .argon2id, .bcrypt: parameters = ""
        case .argon2(let spec):
            let variant = argon2Variants.first { $0.1 == spec.variant }.map { " --argon2-variant \($0.0)" } ?? ""
            let data = spec.associatedData.isEmpty ? "" : " --associated-data \(base64(spec.associatedData))"
            parameters =
                " --mem-cost \(spec.memoryKib) --rounds \(spec.iterations) --parallelization \(spec.parallelism)"
                + "\(variant) --argon2-version \(spec.version)\(data)"
        case .firebaseScrypt(let spec):
            parameters =
                "\(key(spec.signerKey)) --salt-separator \(base64(spec.saltSeparator)) "
                + "--rounds \(spec.rounds) --mem-cost \(spec.memoryCost)"
        case .digest(let spec):
            parameters = " --rounds \(spec.rounds)\(order(spec.order))\(spec.roundsOverHex ? " --rounds-over-hex" : "")"
        case .hmac(let spec):
            parameters = key(spec.signerKey) + order(spec.order)
        case .pbkdf2(let spec): parameters = " --rounds \(spec.rounds)"
        case .scrypt(let spec):
            parameters =
                " --mem-cost \(spec.memoryCost) --block-size \(spec.blockSize) "
                + "--parallelization \(spec.parallelization)"
        }
        return "--hash-algo \(algorithm.name)\(parameters)"
    }
}
