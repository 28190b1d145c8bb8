import Base
import JSON

/// The contents of --key-file. Contents that cannot be a credential are refused before anything is sent, with the
/// reason.
enum KeyFile {
    /// An API key, or the JWT that a service account signed as a caller; white space around it does not count.
    static func credential(in bytes: [UInt8], named path: String) throws(CommandError) -> Secret {
        let key = bytes.trimmed()
        guard !key.isEmpty else { throw refusal(path, "is empty") }
        if key.starts(with: [UInt8]("pk_".utf8)) {
            guard !key.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) else {
                throw refusal(path, "holds more than an API key")
            }
            return Secret(Array(key))
        }
        if let json = try? JSONValue(parsing: Array(key)), json.object != nil {
            if json["private_key"] != nil {
                throw refusal(path, "is a service account's key file, which signs JWTs and is not sent itself")
            }
            if json["secret_key"] != nil {
                throw refusal(path, "is the JSON that apikey create printed; the key is its secret_key alone")
            }
            throw refusal(path, "is JSON, not an API key")
        }
        guard isJWT(key) else { throw refusal(path, "holds no API key: one begins with pk_") }
        return Secret(Array(key))
    }

    /// Three parts, the first of which begins as every encoded JSON object does.
    private static func isJWT(_ key: ArraySlice<UInt8>) -> Bool {
        key.starts(with: [UInt8]("eyJ".utf8)) && key.count { $0 == UInt8(ascii: ".") } == 2
            && !key.contains { $0 <= 0x20 || $0 >= 0x7F }
    }

    private static func refusal(_ path: String, _ what: String) -> CommandError {
        .usage("\(path): \(what)", hint: "postern apikey create --key-out FILE makes a file for --key-file")
    }
}
