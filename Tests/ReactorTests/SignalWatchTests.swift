import Glibc
import Reactor
import Testing

@Suite struct SignalWatchTests {
    @Test func signalsReachTheLoopAndCancelRestores() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            resident.performOutsideTask { resident in
                var watch: SignalWatch?
                watch = SignalWatch(on: loop, signals: [SIGHUP, SIGUSR2]) { signal in
                    resident.note(signal == SIGHUP ? "hangup" : "user")
                    guard signal == SIGHUP else { return }
                    watch?.cancel()
                    watch = nil
                }
                kill(getpid(), SIGUSR2)
            }
            #expect(try await resident.entries(1) == ["user"])
            kill(getpid(), SIGHUP)
            let entries = try await resident.entries(2)
            #expect(entries == ["user", "hangup"])
            #expect(await resident.perform { _ in hasDefaultAction(SIGHUP) })
        }
    }

    @Test func aWriteToAClosedSocketIsAnError() {
        SignalWatch.ignoreBrokenPipes()
        let sockets = SocketPair()
        shutdown(sockets.there, Int32(SHUT_RDWR))
        #expect(write(sockets.here, "x", 1) == -1)
        #expect(errno == EPIPE)
    }
}

private func hasDefaultAction(_ signal: Int32) -> Bool {
    var action = sigaction()
    sigaction(signal, nil, &action)
    return unsafeBitCast(action.__sigaction_handler, to: Int.self) == 0
}
