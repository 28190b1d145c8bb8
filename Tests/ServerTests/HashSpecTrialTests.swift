import Base
import Messages
import Service
import TestSupport
import Testing

/// Users.VerifyHashSpec: which parameters a hash of another system was made with.
@Suite struct HashSpecTrialTests {
    private static func verify(
        _ client: RawClient, _ spec: PasswordHashSpec.Algorithm?, hash: [UInt8],
        password: Text = PasswordVector.password
    ) throws -> UsersVerifyHashSpecResponse {
        try client.call(
            "postern.v1.Users/VerifyHashSpec",
            UsersVerifyHashSpecRequest(
                password: Secret(password.bytes), passwordHash: Secret(hash), salt: PasswordVector.salt,
                spec: spec.map { PasswordHashSpec(algorithm: $0) }))
    }

    @Test func `The right parameters are said to be right, whatever the algorithm`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for vector in PasswordVector.all {
                let right = try Self.verify(client, vector.algorithm, hash: vector.hash)
                #expect(right.matches && right.matching.count >= 1 && right.triedCount >= 1, "\(vector)")
                let wrong = try Self.verify(client, vector.algorithm, hash: vector.hash, password: "passwort")
                #expect(!wrong.matches && wrong.matching.isEmpty, "\(vector)")
            }
        }
    }

    @Test func `Parameters that are nearly right are found, without the signer key`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for vector in PasswordVector.all {
                switch vector.algorithm {
                case .digest(let spec) where spec.rounds == 1:
                    let order: PasswordHashOrder = spec.order == .passwordFirst ? .saltFirst : .passwordFirst
                    let mistaken = DigestSpec(function: spec.function, rounds: 2, order: order)
                    let found = try Self.verify(client, .digest(mistaken), hash: vector.hash)
                    #expect(!found.matches && !found.matching.isEmpty, "\(vector)")
                case .hmac(var spec):
                    spec.order = spec.order == .saltFirst ? .passwordFirst : .saltFirst
                    let found = try Self.verify(client, .hmac(spec), hash: vector.hash)
                    guard case .hmac(let right) = found.matching.first?.algorithm else {
                        Issue.record("\(vector)")
                        continue
                    }
                    #expect(!found.matches && right.order != spec.order && right.signerKey.isEmpty)
                case .pbkdf2(let spec):
                    let mistaken = Pbkdf2Spec(function: spec.function == .sha1 ? .sha256 : .sha1, rounds: spec.rounds)
                    let found = try Self.verify(client, .pbkdf2(mistaken), hash: vector.hash)
                    #expect(found.matching == [PasswordHashSpec(algorithm: .pbkdf2(spec))], "\(vector)")
                default: break
                }
            }
        }
    }

    @Test func `What cannot be tried is refused`() async throws {
        try await withServer { server in
            let client = try server.connect()
            let sha1 = PasswordHashSpec.Algorithm.digest(DigestSpec(function: .sha1, rounds: 1))
            let hash = [UInt8](repeating: 1, count: 20)
            expectRefusal("MISSING_PASSWORD") { _ = try Self.verify(client, sha1, hash: hash, password: "") }
            let limit = Limits().passwordMax
            let longest = String(repeating: "x", count: limit)
            #expect(try !Self.verify(client, sha1, hash: hash, password: Text(longest)).matches)
            expectRefusal("PASSWORD_TOO_LONG") {
                _ = try Self.verify(client, sha1, hash: hash, password: Text(longest + "x"))
            }
            expectRefusal("INVALID_HASH_SPEC") { _ = try Self.verify(client, nil, hash: hash) }
            expectRefusal("INVALID_HASH_SPEC") {
                _ = try Self.verify(client, .hmac(HmacSpec(function: .sha1)), hash: hash)
            }
            expectRefusal("INVALID_PASSWORD_HASH") { _ = try Self.verify(client, sha1, hash: [1]) }
            let costly = PasswordHashSpec.Algorithm.pbkdf2(Pbkdf2Spec(function: .sha512, rounds: 10_000_000))
            expectRefusal("PASSWORD_HASH_TOO_COSTLY") {
                _ = try Self.verify(client, costly, hash: [UInt8](repeating: 1, count: 32))
            }
        }
    }

    @Test(arguments: [(Duration.seconds(60), 3), (.milliseconds(1), 1)] as [(Duration, Int32)])
    func `No more is tried than the time allows`(timeMax: Duration, triedCount: Int32) async throws {
        try await withServer(configure: { $0.limits.administration.hashTrialTimeMax = timeMax }) { server in
            let spec = PasswordHashSpec.Algorithm.pbkdf2(Pbkdf2Spec(function: .sha512, rounds: 20_000))
            let tried = try Self.verify(server.connect(), spec, hash: [UInt8](repeating: 1, count: 64))
            #expect(tried.triedCount == triedCount && !tried.matches)
        }
    }
}
