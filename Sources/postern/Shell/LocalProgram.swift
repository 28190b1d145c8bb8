import Glibc

/// Another program of Postern on this machine, for work that `postern` does not do by itself.
enum LocalProgram {
    /// The program of this name that was installed beside this one, or the name alone, which is looked for on PATH.
    static func path(of name: String) -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let path = buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
        guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return name }
        let sibling = String(decoding: path[...slash], as: UTF8.self) + name
        return access(sibling, X_OK) == 0 ? sibling : name
    }

    /// Runs a program to its end, and returns its standard output. It shares this program's standard error. A signal
    /// that ends this program ends the other one, too; after a signal, none is begun.
    static func run(
        _ program: String, _ arguments: [String]
    ) throws(CommandError) -> (status: Int32, output: String) {
        guard !Interruption.isAsked else { throw interrupted(program) }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw CommandError("pipe: \(text(of: errno))") }
        defer { close(ends[0]) }
        let child = try spawn(program, arguments, output: ends)
        var output: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            guard Interruption.waitForInput(ends[0]) else {
                kill(child, SIGTERM)
                break
            }
            let count = read(ends[0], &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            output += chunk[..<count]
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 && errno == EINTR {}
        guard !Interruption.isAsked else { throw interrupted(program) }
        let isEnded = status & 0x7F == 0
        return (isEnded ? status >> 8 & 0xFF : -1, String(decoding: output, as: UTF8.self))
    }

    private static func interrupted(_ program: String) -> CommandError {
        CommandError("\(program): interrupted", exitCode: .interrupted)
    }

    /// `pipe`: the end to read from, and the end to write to. Only the child keeps the second end, as its standard
    /// output: so reading ends when the child does.
    private static func spawn(
        _ program: String, _ arguments: [String], output pipe: [Int32]
    ) throws(CommandError) -> pid_t {
        defer { close(pipe[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO)
        for end in pipe { posix_spawn_file_actions_addclose(&actions, end) }
        let words = ([program] + arguments).map { strdup($0) }
        defer { for word in words { free(word) } }
        var child = pid_t()
        let code = posix_spawnp(&child, program, &actions, nil, words + [nil], environ)
        guard code == 0 else {
            throw CommandError(
                "\(program): \(text(of: code))", hint: "--posternd FILE says where the server's program is")
        }
        return child
    }

    private static func text(of code: Int32) -> String { String(cString: strerror(code)) }
}
