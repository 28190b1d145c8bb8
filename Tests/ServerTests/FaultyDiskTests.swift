import Base
import Glibc
import Messages
import TestSupport
import Testing

/// posternd while single calls of a commit fail: each kind of call, with each error, at several places.
@Suite struct FaultyDiskTests {
    struct Fault: CustomStringConvertible {
        let kind: String
        let how: String
        /// Which of the calls of this kind fails, counted from now.
        let place: Int

        var description: String { "\(kind) \(how) \(place)" }

        /// Whether the process may end: LMDB's own page was not written, or the disk failed although it has room.
        var mayEnd: Bool { kind == "meta" || how == "EIO" && kind != "grow" }

        /// The disk's rules for this fault. A write is done in part on a full disk only.
        func rules(_ server: FaultyServer) -> [String] {
            let rule = "fail \(kind) \(server.count(of: kind) + place) 1 \(how)"
            return how == "short" ? [rule, "fail grow 1 0 ENOSPC"] : [rule]
        }

        static let all: [Fault] = ["write", "sync", "meta", "grow"].flatMap { kind in
            ["ENOSPC", "EDQUOT", "EROFS", "EIO", "short"].flatMap { how in
                (1...3).map { Fault(kind: kind, how: how, place: $0) }
            }
        }
    }

    @Test func `No single fault loses what was acknowledged, or ends the server without need`() throws {
        try withFaultyServer(isCounting: true) { server in
            var acknowledged: [String] = []
            var refused: [String] = []
            var endCount = 0
            for (number, fault) in Fault.all.enumerated() {
                server.setRules(fault.rules(server))
                var hasEnded = false
                for index in 0..<4 where !hasEnded {
                    // A long value makes the file longer, and LMDB write more than one range of pages.
                    let uid = "f\(number)n\(index)"
                    do {
                        let reason = try server.create(uid, photoByteCount: index % 2 == 0 ? 2_000 : 0)
                        if reason == nil { acknowledged.append(uid) } else { refused.append(uid) }
                        let isExpected = [nil, "STORE_FULL", "STORE_UNAVAILABLE"].contains(reason)
                        #expect(isExpected, "\(fault): \(reason ?? "")")
                    } catch is RawClient.RawError {
                        hasEnded = true
                    }
                }
                if hasEnded {
                    let status = server.process.wait(seconds: 20)
                    #expect(fault.mayEnd, "\(fault) ended the server: \(server.log)")
                    #expect(status == 70, "\(fault)")
                    #expect(server.log.contains("the store failed, the process ends"), "\(fault)")
                    endCount += 1
                    server.setRules([])
                    try server.restart()
                }
                server.setRules([])
                #expect(try server.create("f\(number)after") == nil, "\(fault)")
                acknowledged.append("f\(number)after")
                for uid in acknowledged.suffix(5) { #expect(try server.exists(uid), "\(fault): \(uid)") }
            }
            #expect(endCount > 3)
            server.process.kill()
            try server.restart()
            for uid in acknowledged { #expect(try server.exists(uid)) }
            for uid in refused { #expect(try !server.exists(uid)) }
            #expect(!refused.isEmpty)
        }
    }
}
