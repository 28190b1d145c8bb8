import Base
import Crypto
import Glibc
import Identity
import Messages
import Service
import TestSupport
import Testing
import Wire

/// Stream ids, frame types and resets against the protocol.
extension WireAttackTests {
    @Test func frameTypesOfTheOtherSideAndCriticalOnesEndTheConnection() async throws {
        try await withServer { server in
            for type: UInt8 in [0x02, 0x80, 0xFF] {
                let client = try server.connect()
                try client.send(header(0, stream: 1, type: type))
                #expect(try client.readUntilClosed().isEmpty)
            }
            let client = try server.connect()
            try client.send(header(3, stream: 0, type: 0x42) + [1, 2, 3])
            _ = try client.call(Self.check, GRPCHealthCheckRequest(), returning: GRPCHealthCheckResponse.self)
        }
    }

    // W29, W30
    @Test func streamIDsAreOddAndIncrease() async throws {
        try await withServer { server in
            let client = try server.connect()
            for (stream, isGood) in [
                (UInt32(5), true), (3, false), (5, false), (4, false), (0, false), (UInt32.max, false),
                (UInt32(Int32.max), true),
            ] {
                try client.send(client.request(Self.check, GRPCHealthCheckRequest(), stream: stream))
                let frame = try client.readFrame()
                #expect(frame.header.stream == stream)
                let answer = try? RawClient.response(frame, returning: GRPCHealthCheckResponse.self)
                #expect((answer != nil) == isGood, "stream \(stream)")
            }
            let again = try server.connect()
            let watch = again.request(
                "grpc.health.v1.Health/Watch", GRPCHealthCheckRequest(), stream: 1, kind: .remoteClosed)
            try again.send(watch + watch)
            _ = try again.readUntilClosed()
            try expectCanary(server)
        }
    }

    // W32
    @Test func rapidResetEndsTheConnection() async throws {
        try await withServer(configure: { $0.limits.cancelsPerSecondMax = 50 }) { server in
            let client = try server.connect()
            _ = try client.hello()
            _ = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            var burst = ByteBuffer()
            for _ in 0..<400 {
                let stream = client.nextStream()
                let watch = client.request(
                    "grpc.health.v1.Health/Watch", GRPCHealthCheckRequest(), stream: stream, kind: .remoteClosed)
                burst.append(contentsOf: watch)
                ControlFrame.cancel(stream: stream, .cancelled).append(to: &burst)
            }
            try? client.send(burst.copyBytes())
            let frames = try client.readUntilClosed()
            #expect(frames.contains { $0.header.type == .goAway })
            try expectCanary(server)
        }
    }

    // W33
    @Test func cancellingAnUnknownStreamChangesNothing() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try client.hello()
            var frames = ByteBuffer()
            ControlFrame.cancel(stream: 77, .cancelled).append(to: &frames)
            try client.send(frames.copyBytes())
            _ = try client.call(Self.check, GRPCHealthCheckRequest(), returning: GRPCHealthCheckResponse.self)
        }
    }

    /// A watch that is cancelled leaves nothing behind: who may open some can open any number, one after the other.
    @Test func cancelledHealthWatchesLeaveNothingBehind() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try client.hello()
            _ = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            for _ in 0..<50 {
                let stream = client.nextStream()
                let watch = client.request(
                    "grpc.health.v1.Health/Watch", GRPCHealthCheckRequest(), stream: stream, kind: .remoteClosed)
                try client.send(watch)
                #expect(try client.readFrame().header.type == .data)
                var cancel = ByteBuffer()
                ControlFrame.cancel(stream: stream, .cancelled).append(to: &cancel)
                try client.send(cancel.copyBytes())
                // The answer comes from the same connection, after the cancellation.
                _ = try client.call(Self.check, GRPCHealthCheckRequest(), returning: GRPCHealthCheckResponse.self)
            }
            // The tasks of the last ones may still be ending.
            #expect(server.instance.health.waiterCount <= 5)
        }
    }

    // W34, W35
}
