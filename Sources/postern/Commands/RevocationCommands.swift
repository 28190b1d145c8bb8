import Base
import JSON
import Messages
import PosternClient

/// postern revocations …
enum RevocationCommands {
    static let all = [watch]

    static let watch = Command(
        path: ["revocations", "watch"], methods: ["Tokens/WatchRevocations"],
        summary: "Prints what verifiers have to refuse, as it happens, until Ctrl-C; first what still matters.",
        example: "revocations watch --any-tenant -o ndjson",
        flags: [
            Flag("any-tenant", "of all tenants the key is for"),
            Flag("cursor", "CURSOR", "go on after this one; json and ndjson show it with each revocation"),
        ], isReadOnly: true
    ) { session in
        let client = TokensClient(channel: try session.channel())
        var request = TokensWatchRevocationsRequest(
            tenantID: try session.tenantID(), anyTenant: session.arguments.isSet("any-tenant"),
            cursor: session.arguments.text("cursor") ?? .empty)
        try await session.keepWatching(while: { !request.cursor.isEmpty }) { options in
            var place = WatchedPlace(cursor: request.cursor)
            for try await message in try await client.watchRevocations(request, options: options) {
                let cursors = place.take(message)
                if let news = place.resumption(message) { session.say(news) }
                for (revocation, cursor) in zip(message.revocations, cursors) {
                    try session.printNext(WatchedRevocation(revocation: revocation, cursor: cursor))
                }
                if let news = place.completion(message) { session.say(news) }
                if !message.cursor.isEmpty { request.cursor = message.cursor }
            }
        }
    }
}

/// The position in a stream of revocations: the cursor from which nothing is lost, and the snapshot's progress.
struct WatchedPlace {
    /// The cursor after everything that was read. Empty while a snapshot is not complete.
    private(set) var cursor: Text
    private var isInSnapshot = false
    private var snapshotCount = 0

    init(cursor: Text) { self.cursor = cursor }

    /// A cursor for each revocation: the message's cursor for its last revocation, and the former cursor for the
    /// others.
    mutating func take(_ message: TokensWatchRevocationsResponse) -> [Text] {
        if message.snapshotReason != .unspecified { (cursor, isInSnapshot, snapshotCount) = (.empty, true, 0) }
        snapshotCount += message.revocations.count
        var cursors = Array(repeating: cursor, count: message.revocations.count)
        if !message.cursor.isEmpty { cursor = message.cursor }
        if !cursors.isEmpty { cursors[cursors.count - 1] = cursor }
        return cursors
    }

    /// Tells the user that the cursor was of no use. Nil: there is nothing to tell.
    func resumption(_ message: TokensWatchRevocationsResponse) -> String? {
        let all = "all that still matters follows, what was read before is void"
        switch message.snapshotReason {
        case .cursorTooOld:
            return "what came behind the cursor is no longer kept (CURSOR_TOO_OLD): \(all)"
        case .cursorUnknown:
            return "the cursor is of another store or tenant (CURSOR_UNKNOWN): \(all)"
        case .unspecified, .noCursor: return nil
        }
    }

    /// Tells the user that the message was the snapshot's last. Nil: it was not.
    mutating func completion(_ message: TokensWatchRevocationsResponse) -> String? {
        guard isInSnapshot, !message.continues else { return nil }
        isInSnapshot = false
        return "the snapshot is complete; revocations: \(snapshotCount), cursor: \(cursor)"
    }
}

private struct WatchedRevocation: Record {
    static let columns = ["time_micros", "kind", "tenant_id", "uid", "session_id", "valid_after_micros", "key_id"]

    let revocation: Revocation
    /// The cursor from which a watch continues without a gap. Empty: there is none yet.
    let cursor: Text

    var id: String { revocation.uid.string }

    var json: JSONValue {
        let cursor = JSONValue.Member("cursor", cursor.isEmpty ? .null : .string(cursor))
        return .object((revocation.json.object ?? []) + [cursor])
    }
}
