import Glibc

/// Runs `body` with the path of a fresh, empty directory (mode 0700) that is removed afterwards with all it holds.
public func withTemporaryDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
    let path = makeTemporaryDirectory()
    defer { removeTree(path) }
    return try body(path)
}

public func withTemporaryDirectory<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let path = makeTemporaryDirectory()
    defer { removeTree(path) }
    return try await body(path)
}

/// The names of everything in a directory, in alphabetical order. Empty also if there is no such directory.
public func fileNames(in path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}

private func makeTemporaryDirectory() -> String {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/postern-test-XXXXXX".utf8CString)
    guard let path = mkdtemp(&template) else { fatalError("mkdtemp: errno \(errno)") }
    return String(cString: path)
}

/// Deletes a file, or a directory and everything below it; links are not followed.
private func removeTree(_ path: String) {
    if unlink(path) == 0 { return }
    guard let directory = opendir(path) else { return }
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if name != "." && name != ".." { removeTree(path + "/" + name) }
    }
    closedir(directory)
    rmdir(path)
}
