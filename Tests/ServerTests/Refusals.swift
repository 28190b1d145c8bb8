import Base
import Testing

/// That `body` is refused for this reason.
///
/// A closure inside of `#expect` and another one of its type in the same function get one symbol from Swift 6.3, and
/// one of them runs for both: closures stay outside.
func expectRefusal(_ reason: String, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void) {
    let found = failure(body).reason
    #expect(found == reason, sourceLocation: sourceLocation)
}
