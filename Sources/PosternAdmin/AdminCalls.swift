// Helpers for the calls of the administrators.

import Base
import PosternClient

/// Sends a change with an idempotency key of its own, unless the caller gave one, so that a lost answer can be asked
/// for again without doing the change again.
///
/// A credential has a limited number of keys per day. When they are used up, the server does nothing, and the change is
/// sent again without a key.
func sendOnce<Request, Answer>(
    _ send: (Request, CallOptions) async throws(Failure) -> Answer, _ request: Request, _ options: CallOptions
) async throws(Failure) -> Answer {
    guard options.idempotencyKey.isEmpty else { return try await send(request, options) }
    var keyedOptions = options
    keyedOptions.idempotencyKey = Text(randomHex() + randomHex())
    do throws(Failure) {
        return try await send(request, keyedOptions)
    } catch {
        guard error.is(.tooManyIdempotencyKeys) else { throw error }
    }
    return try await send(request, options)
}

extension CallOptions {
    /// The options for one call of a change that takes several calls. Each of them is a request of its own. So only the
    /// first has the caller's idempotency key, and the others have the key with their number: `key/2`, `key/3`. The
    /// server takes at most 256 bytes, so the caller's key has to leave some for the number.
    func ofCall(_ number: Int) -> CallOptions {
        guard number > 1, !idempotencyKey.isEmpty else { return self }
        var options = self
        options.idempotencyKey = Text("\(idempotencyKey)/\(number)")
        return options
    }
}

private func randomHex() -> String { String(UInt64.random(in: .min ... .max), radix: 16) }

/// Returns a message that every answer holds. Throws MALFORMED_RESPONSE when it is missing.
func required<Part>(_ part: Part?) throws(Failure) -> Part {
    guard let part else {
        throw Failure(.malformedResponse, "The answer lacks what was asked for.")
    }
    return part
}

/// The lifetime in seconds. Nil is 0, which means the server's default; a lifetime of zero or less throws, so that it
/// does not mean the same.
func wholeSeconds(_ lifetime: Duration?) throws(Failure) -> Int64 {
    guard let lifetime else { return 0 }
    guard lifetime > .zero else { throw .invalid(.invalidDuration, field: "lifetime", "must be above 0") }
    return lifetime.secondsRoundedUp
}

extension Duration {
    var secondsRoundedUp: Int64 {
        let (seconds, attoseconds) = components
        return attoseconds > 0 && seconds < .max ? seconds + 1 : seconds
    }
}

/// Waits before a stream is opened again. The channel paces attempts to connect; this paces streams that a server
/// accepts and ends at once.
func pause(afterFailures count: Int) async throws(Failure) {
    let milliseconds = min(5_000, 50 << min(count, 7))
    do {
        try await Task.sleep(for: .milliseconds(Int.random(in: milliseconds / 2...milliseconds)))
    } catch {
        throw Failure(.cancelled, "The task was cancelled.")
    }
}
