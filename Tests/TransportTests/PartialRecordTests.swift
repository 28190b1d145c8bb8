import Base
import TLS
import TestSupport
import Testing

@testable import Transport

/// OpenSSL keeps a buffer of 17 KiB for a TLS record that has not come whole: it is memory of the connection.
@Suite struct PartialRecordTests {
    /// The head of a record of 16 KiB.
    private static let head: [UInt8] = [0x17, 3, 3, 0x40, 0]

    @Test func `A part of a record counts as memory until its connection is gone`() async throws {
        try await TLSServer.run { server in
            let client = try server.client()
            try client.sendInClear(Self.head)
            try await until { server.server.memory.byteCount >= 17 * 1024 }
            client.close()
            try await until { server.server.memory.byteCount == 0 }
        }
    }

    @Test func `Connections that end no record are closed when memory is needed`() async throws {
        var limits = Limits()
        limits.connectionMemoryMax = 128 * 1024
        try await TLSServer.run(limits: limits) { server in
            var clients: [TLSClient] = []
            // Seven parts are above seven eighths of the bound.
            for _ in 0..<7 {
                let client = try server.client()
                try client.sendInClear(Self.head)
                clients.append(client)
            }
            try await until { server.server.metrics.connectionsClosedForMemory.value > 0 }
            for client in clients { client.close() }
        }
    }
}
