import Base
import JSON
import TestSupport
import Testing

/// A step of a person at the terminal: a text to wait for, or a line to type.
enum Step {
    case expect(String)
    case type(String)
    /// Types the word that was shown behind the text.
    case typeWhatFollowed(String)
    /// Types the code that oathtool makes, for a time, of the secret behind the text.
    case typeTOTP(ofSecretBehind: String, at: Timestamp)

    var json: JSONValue {
        switch self {
        case .expect(let text): ["expect": .string(Text(text))]
        case .type(let line): ["type": .string(Text(line))]
        case .typeWhatFollowed(let text): ["type-what-followed": .string(Text(text))]
        case .typeTOTP(let text, let time): ["type-totp": .string(Text(text)), "at": .integer(time.seconds)]
        }
    }
}

/// A file with the server's key, as the programs want it.
func keyFile(_ server: TestServer) -> String {
    let path = "\(server.directory)/key"
    writeFile(path, server.adminKey.withBytes { [UInt8]($0) })
    return path
}

/// Runs the program in a pseudo-terminal (Tests/Fixtures/drive_terminal.py) to its end, and returns what it showed.
func drive(_ server: TestServer, _ steps: [Step]) throws -> String {
    let script = "\(server.directory)/steps"
    writeFile(script, steps.flatMap { $0.json.serialized() + [UInt8(ascii: "\n")] })
    let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
    let output = "\(server.directory)/terminal"
    let process = try ChildProcess(
        "/usr/bin/python3",
        [
            "/\(folder)/Fixtures/drive_terminal.py", script, ChildProcess.built("ExampleTerminal"),
            "127.0.0.1:\(server.port)", keyFile(server), "\(server.directory)/user.json",
        ], output: output)
    let status = process.wait(seconds: 120)
    let shown = String(decoding: readFile(output) ?? [], as: UTF8.self)
    #expect(status == 0, "\(shown)")
    return shown
}
