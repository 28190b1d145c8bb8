import Glibc

/// A file that could not be read or written: which call, and the system's reason.
public struct FileError: Error, CustomStringConvertible {
    public let path: String
    public let call: String
    public let code: Int32

    public init(path: String, call: String, code: Int32) {
        self.path = path
        self.call = call
        self.code = code
    }

    public var description: String { "\(path): \(call): \(String(cString: strerror(code)))" }
}
