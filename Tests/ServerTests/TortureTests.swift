import TestSupport
import Testing

/// tools/torture against the posternd of this build: a minute of faults, and whether its checker finds planted damage.
@Suite struct TortureTests {
    /// In two halves, each with servers of its own.
    @Test func aMinuteOfFaultsLosesNothingAndLetsNobodyIn() async throws {
        try await inHalves { _ in try expectSuccess(["--seconds", "30"], seconds: 150) }
    }

    @Test func theCheckerFindsDamageOfEveryKind() throws {
        try expectSuccess(["--self-test"], seconds: 120)
    }

    private func expectSuccess(_ arguments: [String], seconds: Int) throws {
        try withTemporaryDirectory { directory in
            let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
            let output = "\(directory)/torture"
            let process = try ChildProcess(
                "/usr/bin/python3",
                ["\(root)/tools/torture", "--posternd", ChildProcess.built("posternd"), "--directory", directory]
                    + arguments,
                output: output)
            let status = process.wait(seconds: seconds)
            #expect(status == 0, "\(String(decoding: readFile(output) ?? [], as: UTF8.self))")
        }
    }
}
