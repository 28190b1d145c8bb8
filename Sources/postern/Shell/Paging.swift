import Base

let limitFlag = Flag("limit", "N", "stop after so many (default: all)")

/// Prints a whole list: page by page if the format allows it, or at the end if the column widths must be known.
func printPages<Element: Record>(
    _ session: Session, _ fetch: (_ token: Text, _ size: Int32) async throws -> ([Element], next: Text)
) async throws {
    var rest = try session.arguments.integer("limit", in: 1...Int64.max) ?? .max
    var collected: [Element] = []
    var token = Text.empty
    let isStreaming = [.ndjson, .name].contains(session.output.format) || session.output.isQuiet
    repeat {
        let (page, next) = try await fetch(token, Int32(min(rest, 1_000)))
        let taken = Array(page.prefix(Int(min(rest, Int64(page.count)))))
        rest -= Int64(taken.count)
        if isStreaming { session.output.print(taken) } else { collected += taken }
        try session.console.checkOutput()
        token = next
    } while !token.isEmpty && rest > 0
    guard !isStreaming else { return }
    session.output.print(collected)
    if collected.isEmpty { try session.sayThatNothingWasFound() }
}

/// Makes the calls of a change that takes several. If one fails, `done` says what those before it did: it stays done.
/// Nil: nothing.
func makeCalls(
    _ session: Session, done: @autoclosure () -> String?, _ calls: () async throws -> Void
) async throws {
    do {
        try await calls()
    } catch {
        if let what = done() { session.say("stopped: \(what)") }
        throw error
    }
}
