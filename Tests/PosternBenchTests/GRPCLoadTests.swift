import Base
import Glibc
import JSON
import Messages
import TLS
import TestSupport
import Testing
import Wire

@testable import PosternBench

/// Load by gRPC, against a real server.
@Suite struct GRPCLoadTests {
    @Test func `A mix goes by gRPC as by native frames, in plain text and by TLS`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let mix = ["--mix", "get=3,verify=1,lookup=1,refresh=1,sign-in=1,health=1", "--connections", "2"]
            let grpc = mix + ["--transport", "grpc", "--in-flight", "8"]
            let tls = grpc + ["--ca-file", bench.certificates.authorityFile]
            for (words, port) in [(grpc, bench.server.port), (tls, bench.tlsPort)] {
                let result = try bench.load("run", words, port: port)
                #expect(result.operations.map(\.name).contains("refresh"))
                #expect(result.operations.allSatisfy { $0.record.okCount > 0 }, "\(words)")
                #expect(result.errorCount == 0 && result.connectionsLost == 0)
                #expect(result.configuration.first { $0.name == "transport" }?.value == "grpc")
            }
        }
    }

    @Test func `An open loop, a scenario and a search go by gRPC, too`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let open = ["--mix", "get=1", "--transport", "grpc", "--rate", "200", "--arrivals", "uniform"]
            let result = try bench.load("run", open)
            #expect(result.operations[0].record.okCount == 200 && !result.operations[0].record.service.isEmpty)
            let scenario = [
                "--scenario", "mixed-day", "--transport", "grpc", "--rate", "100", "--max-outstanding", "16",
            ]
            #expect(try bench.load("run", scenario).errorCount == 0)
            // No error rate is below 0: the search ends at a rate of one a second, and its steps are written.
            let search = ["--mix", "health=1", "--transport", "grpc", "--slo", "error_rate<0%", "--from", "2"]
            #expect(throws: BenchError.self) {
                _ = try bench.load("saturate", search + ["--step-seconds", "1", "--warmup", "0"])
            }
            let found = try ResultReader.read(bench.path("result.json"))
            #expect(found.errorCount == 0)
            #expect(found.configuration.first { $0.name == "saturation_per_second" }?.value == .null)
            #expect(found.configuration.first { $0.name == "failed_per_second" }?.value.integer == 1)
        }
    }

    @Test func `A client's certificate is shown where one is given`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            try bench.certificates.makeClient("loader", names: [.uri("spiffe://example.org/loader")])
            let shown = [
                "--ca-file", bench.certificates.authorityFile, "--certificate-file", bench.path("loader.pem"),
                "--certificate-key-file", bench.path("loader-key.pem"),
            ]
            for transport in ["native", "grpc"] {
                let words = ["--mix", "health=1", "--transport", transport] + shown
                #expect(try bench.load("run", words, port: bench.tlsPort).errorCount == 0)
            }
            #expect(throws: UsageError.self) {
                try bench.run("run", ["--mix", "health=1", "--certificate-file", bench.path("loader.pem")])
            }
            let other = shown.dropLast() + [bench.certificates.keyFile]
            #expect(throws: BenchError.self) {
                try bench.run("run", ["--mix", "health=1"] + other, port: bench.tlsPort)
            }
        }
    }

    @Test func `Refusals keep their reasons`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            var population = try StateFile.read(bench.path("state"))
            // The state file now has users that nobody made.
            population.userCount = 1_000_000
            try StateFile.write(population, to: bench.path("state"))
            for transport in ["native", "grpc"] {
                let words = ["--mix", "get=1", "--transport", transport, "--failures-max", "100"]
                let result = try bench.load("run", words)
                #expect(Set(result.operations[0].record.errors.keys) == ["USER_NOT_FOUND"], "\(transport)")
            }
        }
    }

    @Test func `A key that the server does not know is told before the load`() async throws {
        try await BenchServer.with { bench in
            let address = try ServerAddress(parsing: "127.0.0.1:\(bench.server.port)")
            #expect {
                _ = try GRPCConnection(to: address, authorization: "Bearer pk_none_none")
            } throws: { error in
                (error as? BenchError)?.kind == .notReady && "\(error)".contains("CALLER_UNAUTHENTICATED")
            }
        }
    }

    @Test func `An answer without status, with half a message or with an HTTP status is a failure`() {
        func reason(_ fields: [(String, String)], _ answer: [UInt8]) -> String? {
            let call = GRPCCall()
            [1, 2].withUnsafeBytes { call.begin(nativeStream: 7, $0) }
            for (name, value) in fields {
                [UInt8](name.utf8).withUnsafeBytes { name in
                    [UInt8](value.utf8).withUnsafeBytes { call.received(name, $0) }
                }
            }
            answer.withUnsafeBytes { call.received($0) }
            var buffer = ByteBuffer()
            call.appendResponse(to: &buffer)
            guard let header = FrameHeader.read(buffer.readable), header.stream == 7, header.type == .response else {
                return "no frame"
            }
            let payload = UnsafeRawBufferPointer(rebasing: buffer.readable[FrameHeader.byteCount...])
            guard case .refused(let reason) = Connection.result(header, payload) else { return nil }
            return reason
        }
        let ok = [(":status", "200"), ("grpc-status", "0")]
        #expect(reason(ok, [0, 0, 0, 0, 1, 9]) == nil)
        #expect(reason(ok, [0, 0, 0, 0, 2, 9]) == "MALFORMED_ANSWER")
        #expect(reason(ok, [0, 0]) == "MALFORMED_ANSWER")
        #expect(reason(ok, [1, 0, 0, 0, 1, 9]) == "MALFORMED_ANSWER")
        #expect(reason([(":status", "200")], []) == "STREAM_RESET")
        #expect(reason([], []) == "STREAM_RESET")
        #expect(reason([(":status", "503")], []) == "HTTP_503")
        #expect(reason([(":status", "200"), ("grpc-status", "5")], []) == "NOT_FOUND")
        let garbage = [(":status", "200"), ("grpc-status", "5"), ("grpc-status-details-bin", "!!")]
        #expect(reason(garbage, []) == "NOT_FOUND")
    }
}
