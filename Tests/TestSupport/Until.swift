import Glibc

/// How often a condition is looked at, 5 milliseconds apart: for a minute at least.
private let looksMax = 12_000

/// Checks a condition that other threads make true until it holds, and leaves the processors to them in between.
/// Throws `NeverSo`, which fails the test and says what was waited for, if it never held.
public func until(
    _ what: @autoclosure () -> String = "", file: String = #fileID, line: Int = #line,
    _ isSo: () async throws -> Bool
) async throws {
    for _ in 0..<looksMax {
        if try await isSo() { return }
        try await Task.sleep(for: .milliseconds(5))
    }
    throw NeverSo(description: "never so: \(what()) (\(file):\(line))")
}

/// The same where nothing can be awaited. It blocks its thread.
public func blockUntil(
    _ what: @autoclosure () -> String, file: String = #fileID, line: Int = #line, _ isSo: () throws -> Bool
) throws {
    for _ in 0..<looksMax {
        if try isSo() { return }
        usleep(5_000)
    }
    throw NeverSo(description: "never so: \(what()) (\(file):\(line))")
}

/// The error of `until` and `blockUntil`.
public struct NeverSo: Error, CustomStringConvertible {
    public let description: String
}
