/// Checks a condition that other threads make true until it holds, 4,000 times at most, and leaves the processors to
/// them in between. Throws `NeverSo`, which fails the test, if it never held.
public func until(
    _ what: String = "", file: String = #fileID, line: Int = #line, _ isSo: () async throws -> Bool
) async throws {
    for _ in 0..<4_000 {
        if try await isSo() { return }
        try await Task.sleep(for: .milliseconds(5))
    }
    throw NeverSo(description: "never so: \(what) (\(file):\(line))")
}

/// The error of `until`.
public struct NeverSo: Error, CustomStringConvertible {
    public let description: String
}
