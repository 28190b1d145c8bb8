import Base
import TestSupport
import Testing

/// Sends bad values in every field of every method, in a request that is right otherwise: with and without the update
/// mask that names the field, with and without validate_only. A refusal is fine. A server that ends, does not answer,
/// answers INTERNAL or cannot be reached by other clients is a failure.
@Suite struct EveryFieldAttackTests {
    /// Methods that delete or use up, when they succeed, what their next request needs.
    private static let destructive: Set<String> = [
        "postern.v1.Accounts/Delete", "postern.v1.Accounts/Unlink", "postern.v1.Accounts/ResetPassword",
        "postern.v1.Accounts/ApplyOobCode", "postern.v1.Accounts/SignInWithCustomToken",
        "postern.v1.Accounts/SignInWithEmailLink", "postern.v1.Users/Delete", "postern.v1.Users/RevokeSession",
        "postern.v1.Users/Unlink", "postern.v1.Sessions/SignOut", "postern.v1.Sessions/Revoke",
        "postern.v1.Tenants/Delete", "postern.v1.Tokens/Refresh", "postern.v1.Providers/Delete",
        "postern.v1.Outbox/Delete", "postern.v1.Project/DeleteServiceAccount",
    ]

    @Test func noFieldTakesTheServerDown() async throws {
        let halves = try await inHalves { half -> Counts in
            try withTemporaryDirectory { try Self.attack(in: $0, half: half) }
        }
        let methodCount = halves.reduce(0) { $0 + $1.methods }
        let fieldCount = halves.reduce(0) { $0 + $1.fields }
        let requestCount = halves.reduce(0) { $0 + $1.requests }
        print("\(requestCount) requests, \(fieldCount) fields of \(methodCount) methods")
        #expect(methodCount >= 75 && fieldCount > 400 && requestCount > 10_000)
    }

    private struct Counts: Sendable {
        var methods = 0
        var fields = 0
        var requests = 0
    }

    /// Tries every second method with a server of its own, from the first or from the second on. No method needs what
    /// another one left behind, because `prepare` makes everything anew for each.
    private static func attack(in directory: String, half: Int) throws -> Counts {
        let port = try freePort()
        let server = try CrashTests.start(directory, port)
        defer { server.kill() }
        let caller = try HostileCaller(port: port, adminKey: try CrashTests.adminKey(directory))
        var counts = Counts()
        for (place, method) in caller.schema.methods.enumerated() where place % 2 == half {
            counts.methods += 1
            try caller.prepare()
            for (index, path) in caller.schema.paths(of: method.input).enumerated() {
                counts.fields += 1
                let contexts = try contexts(caller, method, path)
                let values =
                    HostileValues.of(path[path.count - 1])
                    + [HostileValues.huge(path[path.count - 1], index)].compactMap { $0 }
                for (number, value) in values.enumerated() {
                    let context = contexts[(number + index) % contexts.count]
                    try attempt(caller, method, path, value, context)
                    counts.requests += 1
                }
                try expectAlive(caller, "\(method.fullName) \(path.map(\.name).joined(separator: "."))")
            }
        }
        return counts
    }

    private struct Context {
        let mask: String?
        let validateOnly: Bool
    }

    /// The ways to send a field: with the mask that the method takes for it or without; for real or to validate.
    private static func contexts(
        _ caller: HostileCaller, _ method: ProtobufSchema.Method, _ path: [ProtobufSchema.Field]
    ) throws -> [Context] {
        let fields = caller.schema.messages[method.input] ?? []
        var masks: [String?] = [nil]
        if fields.contains(where: { $0.name == "update_mask" }) {
            let names = path.map(\.name)
            let candidates =
                (path.count == 1 ? [names] : [])
                + (1..<max(1, names.count)).map { Array(names[1...$0]) }
            for candidate in candidates.reversed() {
                let mask = candidate.joined(separator: ".")
                let probe = caller.request(method, path, [], mask: mask, validateOnly: true)
                let answer = try caller.call(method, probe)
                guard answer.reason != "INVALID_UPDATE_MASK" else { continue }
                masks.append(mask)
                break
            }
        }
        let canValidate = fields.contains { $0.name == "validate_only" }
        return masks.reversed().flatMap { mask in
            (canValidate ? [false, true] : [false]).map { Context(mask: mask, validateOnly: $0) }
        }
    }

    private static func attempt(
        _ caller: HostileCaller, _ method: ProtobufSchema.Method, _ path: [ProtobufSchema.Field],
        _ value: [WireValue], _ context: Context
    ) throws {
        let payload = caller.request(
            method, path, value, mask: context.mask, validateOnly: context.validateOnly)
        func what() -> String {
            let name = path.map(\.name).joined(separator: ".")
            return "\(method.fullName) \(name), mask \(context.mask ?? "none"), validate_only \(context.validateOnly), "
                + "\(payload.count) bytes: \(Text(unchecked: Array(payload.prefix(200))))"
        }
        do {
            let answer = try caller.call(method, payload)
            if [.internal, .unknown, .dataLoss].contains(answer.code) {
                Issue.record("\(answer.code) \(answer.reason): \(what())")
            }
            let endsSessions =
                method.fullName == "postern.v1.Accounts/Update"
                && ["password", "email"].contains(path.first?.name)
            if answer.code == .ok, !context.validateOnly, endsSessions || destructive.contains(method.fullName) {
                try caller.prepare()
            }
        } catch {
            // A server that ended after its answer is noticed by the next request.
            Issue.record("\(error): \(what()), or the request before it")
            throw error
        }
    }

    /// Others are served as well, after all values of a field.
    private static func expectAlive(_ caller: HostileCaller, _ field: String) throws {
        do {
            try caller.expectAlive()
        } catch {
            Issue.record("\(error) for another client, after \(field)")
            throw error
        }
    }
}
