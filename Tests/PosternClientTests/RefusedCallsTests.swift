import Base
import Messages
import TestSupport
import Testing
import Wire

@testable import PosternClient

/// The places on a connection after its server refused calls.
@Suite(.timeLimit(.minutes(1))) struct RefusedCallsTests {
    private static let told = TenantsWatchDenialsResponse(denial: Denial(sequence: 1))

    @Test func `A refusal while few calls are in flight leaves places for calls beside a stream`() async throws {
        let attempts = Recording<UInt32>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            while let request = peer.receiveRequest() {
                if request.header.flags == .remoteClosed {
                    peer.send { $0.appendData(stream: request.stream) { Self.told.encode(into: &$0) } }
                    continue
                }
                attempts.append(request.stream)
                // As a server does that still works on many cancelled calls.
                if attempts.elements.count == 1 {
                    peer.send { ControlFrame.cancel(stream: request.stream, .refused).append(to: &$0) }
                } else {
                    peer.echo(request)
                }
            }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        var stream = try await TenantsClient(channel: channel).watchDenials(.init()).makeAsyncIterator()
        #expect(try await stream.next() == Self.told)
        #expect(try await callNumbered(1, on: channel) == "call-1")
        await channel.shutdown()
        server.stop()
        #expect(attempts.elements.count == 2)
    }

    @Test(arguments: [false, true])
    func `A call that is always given back is sent four times in all`(isIdempotent: Bool) async throws {
        let attempts = Recording<UInt32>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            while let request = peer.receiveRequest() {
                attempts.append(request.stream)
                peer.send { ControlFrame.cancel(stream: request.stream, .refused).append(to: &$0) }
            }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let failure = await #expect(throws: Failure.self) {
            try await callNumbered(1, on: channel, idempotent: isIdempotent)
        }
        #expect(failure?.reason == "REFUSED")
        await channel.shutdown()
        server.stop()
        #expect(attempts.elements.count == 4)
    }

    @Test func `Only the first attempt is sent again without a delay`() {
        let policy = RetryPolicy()
        #expect((1...4).map { policy.sendings(inAttempt: $0) } == [2, 1, 1, 1])
    }

    @Test func `What was learned is never below the places of every server, and is forgotten`() {
        let now = Instant(nanoseconds: 0)
        var places = LearnedPlaces()
        #expect(places.count == .max)
        places.refused(beside: 200, least: 16, now: now)
        #expect(places.count == 200)
        places.refused(beside: 0, least: 16, now: now)
        #expect(places.count == 16)
        places.forget(now: now.advanced(by: LearnedPlaces.lifetime - .seconds(1)))
        #expect(places.count == 16)
        places.forget(now: now.advanced(by: LearnedPlaces.lifetime))
        #expect(places.count == .max)
    }
}
