import Base
import Messages
import PosternClient

/// postern key …
enum KeyCommands {
    static let all = [list, rotate, revoke]

    static let list = Command(
        path: ["key", "list"], methods: ["Project/ListSigningKeys"],
        summary: "Lists the keys that sign ID tokens and session cookies, or did.",
        example: "key list", isReadOnly: true
    ) { session in
        let client = ProjectClient(channel: try session.channel())
        session.output.print(try await client.listSigningKeys(.init(), options: session.callOptions()).keys)
    }

    static let rotate = Command(
        path: ["key", "rotate"], methods: ["Project/RotateSigningKey"],
        summary: "Makes a new signing key. It is published now and signs later, when verifiers have fetched it.",
        example: "key rotate --publish-ahead 1h",
        flags: [
            Flag("publish-ahead", "DURATION", "sign from then on (default 1h); 0 signs at once"),
            Flag("session-cookies", "the key that signs those, instead of ID tokens'"),
            Flag("algorithm", "RS256|ES256|EdDSA", "default: the present key's"),
        ], isValidatable: true, asksForName: true
    ) { session in
        let ahead = try session.arguments.wholeSeconds("publish-ahead") ?? 3_600
        let client = ProjectClient(channel: try session.channel())
        if ahead == 0 {
            let project = try await client.serverInfo(.init(), options: session.callOptions()).projectID
            try session.confirm(
                "The new key signs at once: verifiers that have not fetched it yet refuse its tokens.",
                byName: project.string)
        }
        let request = ProjectRotateSigningKeyRequest(
            algorithm: session.arguments.text("algorithm") ?? .empty, publishAheadSeconds: ahead,
            validateOnly: session.isValidatingOnly,
            tokenUse: session.arguments.isSet("session-cookies") ? .sessionCookie : .idToken)
        let key = try await client.rotateSigningKey(request, options: session.callOptions()).key
        // A dry run makes no key.
        if let key { session.output.print(key) }
    }

    static let revoke = Command(
        path: ["key", "revoke"], methods: ["Project/RevokeSigningKey"],
        summary: "Refuses every token that a key signed, at once: for a key that somebody else may have.",
        example: "key revoke 3q2-7wAAAAA", operands: [.required("key-id")], isValidatable: true
    ) { session in
        let id = session.arguments.operands[0]
        try session.confirm("Refuse all tokens of the key \(id)? Clients renew them with their refresh tokens.")
        let request = ProjectRevokeSigningKeyRequest(keyID: Text(id), validateOnly: session.isValidatingOnly)
        let client = ProjectClient(channel: try session.channel())
        let revoked = try await client.revokeSigningKey(request, options: session.callOptions())
        session.output.print([revoked.key, revoked.successor].compactMap { $0 })
    }
}
