extension ChildProcess {
    /// Starts tools/examples/python/postern_client.py, the example of a client in another language, against `address`.
    ///
    /// The client reads its API key from `file`, and writes to `output`.
    public static func pythonClient(
        _ address: String, keyIn file: String, _ arguments: [String], output: String
    ) throws -> ChildProcess {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let script = "/\(root)/tools/examples/python/postern_client.py"
        return try ChildProcess(
            "/usr/bin/python3", ["-u", script, address, "--api-key-file", file] + arguments,
            output: output)
    }

    /// The lines a process has written to `output` so far.
    public static func lines(in output: String) -> [String] {
        String(decoding: readFile(output) ?? [], as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
