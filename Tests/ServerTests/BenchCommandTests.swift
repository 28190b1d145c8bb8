import Base
import Glibc
import TestSupport
import Testing

/// `postern-bench` as a program, against a posternd of its own.
@Suite struct BenchCommandTests {
    private static func run(_ words: [String], in directory: String, _ port: UInt16) throws -> (
        status: Int32?, said: String
    ) {
        let output = "\(directory)/said"
        let target = ["--server", "127.0.0.1:\(port)", "--key-file", "\(directory)/admin-key"]
        let process = try ChildProcess(
            ChildProcess.built("postern-bench"), [words[0]] + target + words.dropFirst(), output: output)
        let status = process.wait(seconds: 120)
        return (status, String(decoding: readFile(output) ?? [], as: UTF8.self))
    }

    private static func withPosternd(_ body: (_ directory: String, _ port: UInt16) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            let server = try CrashTests.start(directory, port)
            defer { server.kill() }
            _ = try CrashTests.adminKey(directory)
            try body(directory, port)
        }
    }

    @Test func failedAnswersFailTheRunUnlessTheyAreAllowed() throws {
        try Self.withPosternd { directory, port in
            let state = "\(directory)/state"
            let seed = ["seed", "--state", state, "--users", "10", "--password-users", "0", "--sessions", "1"]
            let seeded = try Self.run(seed, in: directory, port)
            #expect(seeded.status == 0 && seeded.said.contains("password hashes: production\n"), "\(seeded)")
            // Twice as many users as there are: half the answers are USER_NOT_FOUND.
            let text = String(decoding: readFile(state) ?? [], as: UTF8.self)
            writeFile(state, [UInt8](text.replacing("\"users\":10", with: "\"users\":20").utf8))
            let get = [
                "run", "--state", state, "--mix", "get=1", "--seconds", "1", "--warmup", "0", "--i-own-this",
            ]
            let failed = try Self.run(get, in: directory, port)
            #expect(failed.status == 3 && failed.said.contains("answers failed"), "\(failed)")
            #expect(try Self.run(get + ["--failures-max", "10"], in: directory, port).status == 3)
            #expect(try Self.run(get + ["--failures-max", "90"], in: directory, port).status == 0)
        }
    }

    @Test func aLoadGoesToASyntheticTenantOrToOneThatTheCallerOwns() throws {
        try Self.withPosternd { directory, port in
            for hashes in ["production", "synthetic"] {
                let state = "\(directory)/\(hashes)"
                let seed = [
                    "seed", "--state", state, "--tenant", hashes, "--users", "5", "--password-users", "0", "--sessions",
                    "1", "--hashes", hashes,
                ]
                #expect(try Self.run(seed, in: directory, port).status == 0)
            }
            func get(_ words: [String]) throws -> (status: Int32?, said: String) {
                let run = ["run", "--seconds", "1", "--warmup", "0"] + words
                return try Self.run(run, in: directory, port)
            }
            let refused = try get(["--state", "\(directory)/production", "--mix", "get=1"])
            #expect(refused.status == 1 && refused.said.contains("is not marked as synthetic"), "\(refused)")
            #expect(try get(["--state", "\(directory)/production", "--mix", "get=1", "--i-own-this"]).status == 0)
            #expect(try get(["--tenant", "production", "--mix", "health=1"]).status == 0)
            let taken = try get(["--state", "\(directory)/synthetic", "--mix", "get=1"])
            #expect(taken.status == 0, "\(taken)")
            // It says what it is about to do.
            #expect(taken.said.contains("get=1 on tenant synthetic (synthetic) at 127.0.0.1:\(port): closed loop"))
        }
    }

    @Test func anOpenLoopWritesItsResultAndJudgesItsObjectives() throws {
        try Self.withPosternd { directory, port in
            let state = "\(directory)/state"
            let seed = [
                "seed", "--state", state, "--users", "10", "--password-users", "0", "--sessions", "2", "--hashes",
                "synthetic",
            ]
            #expect(try Self.run(seed, in: directory, port).status == 0)
            let files = [
                "--json", "\(directory)/r.json", "--hdr", "\(directory)/r.hlog", "--csv", "\(directory)/r.csv",
            ]
            let run = [
                "run", "--state", state, "--mix", "get=3,verify=1", "--rate", "step 50..100 by 50 every 1s", "--warmup",
                "0",
            ]
            let met = try Self.run(
                run + files + ["--slo", "get.p99<30s,error_rate<1%,achieved_rate>1%"], in: directory, port)
            #expect(met.status == 0 && met.said.contains("holds: get.p99<30s"), "\(met)")
            for (name, begin) in [("json", "{"), ("hlog", "#["), ("csv", "second,")] {
                let written = String(decoding: readFile("\(directory)/r.\(name)") ?? [], as: UTF8.self)
                #expect(written.hasPrefix(begin), "\(name)")
            }
            let short = [
                "run", "--state", state, "--mix", "get=3,verify=1", "--rate", "50", "--seconds", "1", "--warmup", "0",
            ]
            let missed = try Self.run(short + ["--slo", "get.p50<1ns"], in: directory, port)
            #expect(missed.status == 99 && missed.said.contains("MISSED: get.p50<1ns"), "\(missed)")
            #expect(try Self.run(short + ["--slo", "sign-in.p50<1s"], in: directory, port).status == 1)
            // The report cannot be written there, but the figures are on the terminal all the same.
            let unwritten = try Self.run(short + ["--json", "\(directory)/none/r.json"], in: directory, port)
            #expect(unwritten.status == 3 && unwritten.said.contains("open loop: "), "\(unwritten)")
        }
    }

    /// Each half has a server of its own.
    @Test func theScenariosRunWithoutAFailureAgainstAServer() async throws {
        try await inHalves { half in
            try Self.withPosternd { directory, port in
                let state = "\(directory)/state"
                let seed = [
                    "seed", "--state", state, "--users", "10", "--password-users", "4", "--sessions", "300", "--hashes",
                    "synthetic",
                ]
                #expect(try Self.run(seed, in: directory, port).status == 0)
                for name in half == 0 ? ["token-traffic", "morning-login"] : ["sign-up-wave", "mixed-day"] {
                    let run = [
                        "run", "--state", state, "--scenario", name, "--rate", "40", "--seconds", "3", "--warmup", "0",
                    ]
                    let done = try Self.run(run, in: directory, port)
                    #expect(done.status == 0 && done.said.contains("0 not sent"), "\(name): \(done)")
                }
                if half == 0 {
                    let closed = [
                        "run", "--state", state, "--scenario", "sign-up-wave", "--seconds", "3", "-o", "json",
                    ]
                    let done = try Self.run(closed, in: directory, port)
                    #expect(done.status == 0 && done.said.contains("\"name\": \"sign-out\""), "\(done)")
                } else {
                    let cost = ["cost", "--state", state, "--mix", "get=1,verify=1", "--seconds", "1"]
                    let done = try Self.run(cost, in: directory, port)
                    #expect(done.status == 0 && done.said.contains("server µs"), "\(done)")
                    #expect(try Self.run(["run", "--scenario", "none"], in: directory, port).status == 1)
                }
            }
        }
    }

    /// Starts a run of an hour, and lets `end` stop it or its server once it is under way. Returns its exit status.
    private static func cutShort(
        _ directory: String, _ port: UInt16,
        _ words: [String] = ["run", "--rate", "100", "--seconds", "3600"], _ end: (ChildProcess) -> Void
    ) throws -> Int32? {
        let bench = try ChildProcess(
            ChildProcess.built("postern-bench"),
            words + [
                "--server", "127.0.0.1:\(port)", "--key-file", "\(directory)/admin-key", "--mix", "health=1",
                "--warmup", "0", "--json", "\(directory)/r.json",
            ], output: "\(directory)/said")
        try blockUntil("the run tells of its first second: \(said(directory))") {
            said(directory).contains("1 s: ")
        }
        end(bench)
        return bench.wait(seconds: 60)
    }

    private static func said(_ directory: String) -> String {
        String(decoding: readFile("\(directory)/said") ?? [], as: UTF8.self)
    }

    @Test func aServerThatGoesInTheMiddleLeavesPartialResults() throws {
        try withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            let server = try CrashTests.start(directory, port)
            _ = try CrashTests.adminKey(directory)
            let status = try Self.cutShort(directory, port) { _ in server.kill() }
            #expect(status == 3)
            #expect(Self.said(directory).contains("8 connections were lost"), "\(Self.said(directory))")
            #expect(readFile("\(directory)/r.json")?.isEmpty == false)
            #expect(try Self.run(["run", "--mix", "health=1"], in: directory, port).status == 2)
        }
    }

    @Test func anInterruptedRunKeepsItsResults() throws {
        try Self.withPosternd { directory, port in
            let status = try Self.cutShort(directory, port) { $0.send(signal: SIGINT) }
            #expect(status == 130)
            #expect(Self.said(directory).contains("interrupted: the figures are partial"), "\(Self.said(directory))")
            let written = String(decoding: readFile("\(directory)/r.json") ?? [], as: UTF8.self)
            #expect(written.contains("\"interrupted\": true"))
        }
    }

    @Test func aSearchThatIsInterruptedSaysNothingAboutTheRateItTried() throws {
        try Self.withPosternd { directory, port in
            let search = ["saturate", "--slo", "p99<30s", "--step-seconds", "3600"]
            let status = try Self.cutShort(directory, port, search) { $0.send(signal: SIGINT) }
            #expect(status == 130)
            let written = String(decoding: readFile("\(directory)/r.json") ?? [], as: UTF8.self)
            #expect(written.contains("\"failed_per_second\": null"), "\(written.prefix(2_000))")
        }
    }

    @Test func anInterruptedStartLeavesNoServerBehind() throws {
        try withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            let server = try CrashTests.start(directory, port)
            _ = try CrashTests.adminKey(directory)
            server.kill()
            let bench = try ChildProcess(
                ChildProcess.built("postern-bench"),
                [
                    "start", "--server", "127.0.0.1:\(port)", "--key-file", "\(directory)/admin-key", "--program",
                    ChildProcess.built("posternd"), "--data-directory", directory, "--starts", "1000",
                ], output: "\(directory)/said")
            try blockUntilServing(port: port)
            bench.send(signal: SIGTERM)
            #expect(bench.wait(seconds: 60) == 130, "\(Self.said(directory))")
            // A server that was left behind would hold the directory.
            let next = try CrashTests.start(directory, try CrashTests.freePort())
            next.kill()
        }
    }

    /// Each run has an identity provider of its own, and new users of it.
    @Test func aSecondRunOfIdentityProviderSignInsWorksToo() throws {
        try Self.withPosternd { directory, port in
            let state = "\(directory)/state"
            let seed = ["seed", "--state", state, "--users", "1", "--password-users", "0", "--sessions", "1"]
            #expect(try Self.run(seed, in: directory, port).status == 0)
            for _ in 0..<2 {
                let run = [
                    "run", "--state", state, "--mix", "idp=1", "--idp-users", "5", "--seconds", "1", "--warmup", "0",
                    "--i-own-this",
                ]
                let signedIn = try Self.run(run, in: directory, port)
                #expect(signedIn.status == 0, "\(signedIn)")
            }
            for _ in 0..<2 {
                let filled = try Self.run(["providers", "--tenants", "3"], in: directory, port)
                #expect(filled.status == 0, "\(filled)")
            }
        }
    }

    /// A user has 100 sessions: sign-ins beyond that revoke the oldest, and the snapshot that a verifier begins with
    /// outgrows the 64 KiB that a stream may bring without credit.
    @Test func revocationsAreMeasuredAfterManySignIns() throws {
        try Self.withPosternd { directory, port in
            let state = "\(directory)/state"
            let seed = [
                "seed", "--state", state, "--users", "5", "--password-users", "1", "--sessions", "1", "--hashes",
                "synthetic",
            ]
            #expect(try Self.run(seed, in: directory, port).status == 0)
            // 64 KiB are at most some 1,500 revocations of a session.
            let signIns = ["run", "--state", state, "--mix", "sign-in=1", "--seconds", "4", "--in-flight", "2"]
            let signedIn = try Self.run(signIns + ["-o", "json"], in: directory, port)
            #expect(signedIn.status == 0 && signedIn.said.contains("\"hashes\": \"synthetic\""), "\(signedIn)")
            let revocation = [
                "revocation", "--state", state, "--verifiers", "3", "--verifications", "10", "--revocations", "3",
                "--quiet-seconds", "0",
            ]
            let measured = try Self.run(revocation, in: directory, port)
            #expect(measured.status == 0 && measured.said.contains("3 revocations, 3 verifiers"), "\(measured)")
        }
    }

    /// Imports more users than one batch has. A second run finds them there.
    @Test func usersAreImportedOnceAndFoundByEveryIndex() throws {
        try Self.withPosternd { directory, port in
            let users = ["users", "--users", "700", "--lookups", "3"]
            let imported = try Self.run(users, in: directory, port)
            #expect(imported.status == 0 && imported.said.contains("700 users, 700 of them new"), "\(imported)")
            #expect(imported.said.contains("Count: 700 users"))
            let again = try Self.run(users + ["-o", "json"], in: directory, port)
            #expect(again.status == 0 && again.said.contains("\"created\": 0"), "\(again)")
        }
    }

    @Test func tenantsAreMadeAndTheServerStartsOverThem() throws {
        try withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            let server = try CrashTests.start(directory, port)
            _ = try CrashTests.adminKey(directory)
            let made = try Self.run(["tenants", "--tenants", "1500"], in: directory, port)
            #expect(made.status == 0 && made.said.contains("1500 tenants made"), "\(made)")
            let start = [
                "start", "--program", ChildProcess.built("posternd"), "--data-directory", directory, "--starts", "2",
            ]
            #expect(try Self.run(start, in: directory, port).status == 2)
            server.kill()
            let started = try Self.run(start, in: directory, port)
            #expect(started.status == 0 && started.said.contains("2 starts: first answer after"), "\(started)")
        }
    }
}
