// Files of `firebase auth:export --format json`: `{"users": [ {…}, {…} ]}`, of any length.

import Base
import JSON

/// Splits such a file into its users, with only one of them in memory.
struct FirebaseExportReader {
    /// Far above any real user.
    static let userByteCountMax = 1024 * 1024

    private enum State {
        /// Before the array; the depth of brackets and, at depth 1, the member's name. Next: `users`.
        case preamble(depth: Int, name: [UInt8])
        /// Between two users. Next: `user`, `done`.
        case users
        /// Next: `users`.
        case user(depth: Int)
        /// After the array; the rest is ignored. Next: none.
        case done
    }

    private let readChunk: () throws -> [UInt8]?
    private var chunk: ArraySlice<UInt8> = []
    private var state = State.preamble(depth: 0, name: [])
    private var isInString = false
    private var isEscaped = false
    private var collected: [UInt8] = []
    /// The user that is being read is above the limit: the rest of it is left out.
    private var isTooLong = false

    /// `readChunk` returns nil at the end.
    init(readChunk: @escaping () throws -> [UInt8]?) { self.readChunk = readChunk }

    /// The next user's JSON, not checked yet; nil at the end. Throws a `FirebaseUser.Rejection` for a user that is too
    /// long, after which the next user can be read; a `CommandError` when the file is something else, or cut off.
    mutating func next() throws -> [UInt8]? {
        while true {
            while let byte = chunk.popFirst() {
                if let user = try take(byte) { return user }
                if case .done = state { return nil }
            }
            if case .done = state { return nil }
            guard let more = try readChunk() else {
                if case .preamble = state { throw CommandError("there is no array \"users\" in the file") }
                throw CommandError("the file ends in the middle: it is not complete")
            }
            chunk = more[...]
        }
    }

    private mutating func take(_ byte: UInt8) throws -> [UInt8]? {
        if isInString { return try takeInString(byte) }
        if byte == UInt8(ascii: "\"") { isInString = true }
        switch state {
        case .preamble(let depth, let name): state = preamble(byte, depth: depth, name: name)
        case .users:
            switch byte {
            case UInt8(ascii: "{"):
                state = .user(depth: 1)
                collected = [byte]
            case UInt8(ascii: "]"): state = .done
            case UInt8(ascii: ","), 0x20, 0x09, 0x0A, 0x0D: break
            default: throw CommandError("\"users\" holds something that is no object")
            }
        case .user(let depth):
            collect(byte)
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["): state = .user(depth: depth + 1)
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                guard depth == 1 else {
                    state = .user(depth: depth - 1)
                    return nil
                }
                state = .users
                defer { (collected, isTooLong) = ([], false) }
                if isTooLong {
                    throw FirebaseUser.Rejection.malformed("the user is above \(Self.userByteCountMax) bytes")
                }
                return collected
            default: break
            }
        case .done: break
        }
        return nil
    }

    private func preamble(_ byte: UInt8, depth: Int, name: [UInt8]) -> State {
        switch byte {
        case UInt8(ascii: "["):
            depth == 1 && name == [UInt8]("users".utf8) ? .users : .preamble(depth: depth + 1, name: [])
        case UInt8(ascii: "{"): .preamble(depth: depth + 1, name: [])
        case UInt8(ascii: "}"), UInt8(ascii: "]"): .preamble(depth: depth - 1, name: [])
        case UInt8(ascii: ","), UInt8(ascii: "\""): .preamble(depth: depth, name: [])
        default: .preamble(depth: depth, name: name)
        }
    }

    private mutating func takeInString(_ byte: UInt8) throws -> [UInt8]? {
        if case .user = state { collect(byte) }
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
            isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            isInString = false
        } else if case .preamble(let depth, let name) = state, depth == 1, name.count < 8 {
            state = .preamble(depth: depth, name: name + [byte])
        }
        return nil
    }

    private mutating func collect(_ byte: UInt8) {
        if isTooLong { return }
        collected.append(byte)
        guard collected.count > Self.userByteCountMax else { return }
        (collected, isTooLong) = ([], true)
    }
}
