import Glibc

/// A posternd that this program started, and ends: also when a second signal ends the program. One at a time.
final class StartedServer {
    let pid: Int
    private(set) var hasEnded = false

    init(_ program: String, _ arguments: [String]) throws(BenchError) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Its log would stand between the figures.
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        let words = ([program] + arguments).map { strdup($0) }
        defer { for word in words { free(word) } }
        var child = pid_t()
        var code: Int32 = 0
        Interruption.changeServer {
            code = posix_spawnp(&child, program, &actions, nil, words + [nil], environ)
            return code == 0 ? child : 0
        }
        guard code == 0 else { throw BenchError(.notReady, "\(program): \(String(cString: strerror(code)))") }
        pid = Int(child)
    }

    /// Sends SIGTERM, then waits. False: the server did not end in time.
    func stop(seconds: Int) -> Bool {
        _ = Glibc.kill(pid_t(pid), SIGTERM)
        for _ in 0..<seconds * 100 {
            if reap(WNOHANG) { return true }
            pause(microseconds: 10_000)
        }
        return false
    }

    /// Sends SIGKILL, unless the server has ended.
    func kill() {
        if hasEnded { return }
        _ = Glibc.kill(pid_t(pid), SIGKILL)
        _ = reap(0)
    }

    /// Whether it has ended; notices an end of its own.
    func checkEnded() -> Bool { hasEnded || reap(WNOHANG) }

    private func reap(_ options: Int32) -> Bool {
        // The id may be another process's as soon as the server is reaped.
        Interruption.changeServer {
            var status: Int32 = 0
            var reaped: pid_t
            repeat { reaped = waitpid(pid_t(pid), &status, options) } while reaped < 0 && errno == EINTR
            hasEnded = hasEnded || reaped == pid_t(pid)
            return hasEnded ? 0 : pid_t(pid)
        }
        return hasEnded
    }
}
