import Base
import Testing

/// Expects that `body` is refused for this reason, and with this metadata `cause` if one is given.
///
/// Swift 6.3 gives a closure inside of `#expect` and another one of its type in the same function the same symbol,
/// and one of them runs for both. So closures stay outside.
func expectRefusal(
    _ reason: String, cause: String? = nil, _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) {
    let found = failure(body)
    #expect(found.reason == reason, comment, sourceLocation: sourceLocation)
    if let cause { #expect(found.metadata("cause") == cause, comment, sourceLocation: sourceLocation) }
}
