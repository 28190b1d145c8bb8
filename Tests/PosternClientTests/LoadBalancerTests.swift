import Base
import TestSupport
import Testing

@testable import PosternClient

@Suite struct LoadBalancerTests {
    /// A load balancer with a clock of its own and no randomness.
    private struct Scene {
        var balancer: LoadBalancer
        var now = Instant(nanoseconds: 1_000_000_000_000)
        var generator = SeededRandom(seed: 7)

        init(
            _ addresses: String, _ policy: LoadBalancingPolicy = .pickFirst,
            configure: (inout ChannelOptions) -> Void = { _ in }
        ) throws(Failure) {
            var options = ChannelOptions()
            options.loadBalancing = policy
            options.reconnect.jitter = 0
            configure(&options)
            balancer = LoadBalancer(try ServerAddress.list(parsing: addresses, countMax: 16), options)
        }

        /// All actions that begin now.
        mutating func begun() -> [LoadBalancer.Action] {
            var actions: [LoadBalancer.Action] = []
            while let action = balancer.next(now: now) { actions.append(action) }
            return actions
        }

        mutating func failed(_ id: Int) {
            balancer.failed(id, .connectionFailed("refused by \(id)"), now: now, using: &generator)
        }

        mutating func lost(_ id: Int) { balancer.lost(id, now: now, using: &generator) }

        mutating func lookedUp(_ server: Int, _ numbers: [UInt8]) -> [Int] {
            let addresses = numbers.map { ResolvedAddress(family: 2, bytes: [$0]) }
            return balancer.lookedUp(server, .success(addresses), now: now, using: &generator)
        }

        mutating func lookupFailed(_ server: Int) -> [Int] {
            balancer.lookedUp(server, .failure(.connectionFailed("no such name")), now: now, using: &generator)
        }

        mutating func pass(_ duration: Duration) { now = now.advanced(by: duration) }
    }

    private static let three = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"

    // Pick first

    @Test func `Pick first tries the servers in order and stays with the first that answers`() throws {
        var scene = try Scene(Self.three)
        #expect(scene.begun() == [.connect(endpoint: 0)])
        scene.failed(0)
        #expect(scene.begun() == [.connect(endpoint: 1)])
        scene.balancer.connected(1)
        scene.pass(.seconds(600))
        #expect(scene.begun() == [])
        #expect(scene.balancer.nextAttempt() == .distantFuture)
        #expect(scene.balancer.outage(now: scene.now) == nil)
    }

    @Test func `Pick first goes to the others before it comes back to a server that was lost`() throws {
        var scene = try Scene(Self.three)
        _ = scene.begun()
        scene.balancer.connected(0)
        scene.lost(0)
        #expect(scene.begun() == [.connect(endpoint: 1)])
        scene.failed(1)
        #expect(scene.begun() == [.connect(endpoint: 2)])
        scene.failed(2)
        // The attempt comes at once: nothing is known against the endpoint but that a connection ended.
        #expect(scene.begun() == [.connect(endpoint: 0)])
        scene.balancer.connected(0)
        scene.lost(0)
        scene.pass(.seconds(2))
        #expect(scene.begun() == [.connect(endpoint: 1)])
    }

    @Test func `A server that was left is in its place again once another one answered`() throws {
        var scene = try Scene(Self.three)
        _ = scene.begun()
        scene.balancer.connected(0)
        scene.lost(0)
        _ = scene.begun()
        scene.balancer.connected(1)
        scene.lost(1)
        #expect(scene.begun() == [.connect(endpoint: 0)])
    }

    @Test func `Pick first comes to every server, however long the dead ones take`() throws {
        var scene = try Scene(Self.three) {
            $0.reconnect.firstDelay = .milliseconds(500)
            $0.reconnect.delayMax = .seconds(3)
        }
        // Connecting to a machine that is gone takes longer than any pause.
        for id in [0, 1, 2, 0, 1, 2, 0] {
            #expect(scene.begun() == [.connect(endpoint: id)])
            scene.pass(.seconds(5))
            scene.failed(id)
        }
        #expect(scene.begun() == [.connect(endpoint: 1)])
        scene.balancer.connected(1)
        scene.pass(.seconds(5))
        scene.lost(1)
        // The order of the list counts again.
        #expect(scene.begun() == [.connect(endpoint: 0)])
    }

    @Test func `When no server can be reached, the outage says until when none is tried`() throws {
        var scene = try Scene(Self.three)
        for id in 0..<3 {
            #expect(scene.balancer.outage(now: scene.now) == nil)
            #expect(scene.begun() == [.connect(endpoint: id)])
            scene.pass(.milliseconds(100))
            scene.failed(id)
        }
        #expect(scene.begun() == [])
        let outage = scene.balancer.outage(now: scene.now)
        #expect(outage?.reason == "CONNECTION_FAILED")
        #expect(outage?.message.contains("127.0.0.1:3, the last of 3 servers") == true)
        #expect(outage?.retryAfter == .milliseconds(800))
        #expect(scene.balancer.nextAttempt() == scene.now.advanced(by: .milliseconds(800)))
        scene.pass(.milliseconds(800))
        #expect(scene.balancer.outage(now: scene.now) == nil)
        #expect(scene.begun() == [.connect(endpoint: 0)])
    }

    @Test func `A clock that stands still, or jumps far ahead, stops nothing`() throws {
        var scene = try Scene("127.0.0.1:1")
        for _ in 0..<100 {
            #expect(scene.begun().count <= 1)
            scene.failed(0)
        }
        scene.now = .distantFuture
        #expect(scene.begun() == [.connect(endpoint: 0)])
        scene.failed(0)
        #expect(scene.balancer.nextAttempt() == .distantFuture)
    }

    // Round robin

    @Test func `Round robin connects to all servers, and again when their pauses are over`() throws {
        var scene = try Scene(Self.three, .roundRobin)
        #expect(scene.begun() == [.connect(endpoint: 0), .connect(endpoint: 1), .connect(endpoint: 2)])
        scene.balancer.connected(0)
        scene.failed(1)
        scene.balancer.connected(2)
        #expect(scene.begun() == [])
        #expect(scene.balancer.nextAttempt() == scene.now.advanced(by: .seconds(1)))
        scene.pass(.seconds(1))
        #expect(scene.begun() == [.connect(endpoint: 1)])
    }

    @Test func `Round robin comes back to a server that was left after a pause, or at once as the last resort`() throws
    {
        var scene = try Scene("127.0.0.1:1,127.0.0.1:2", .roundRobin)
        _ = scene.begun()
        scene.balancer.connected(0)
        scene.balancer.connected(1)
        scene.lost(0)
        #expect(scene.begun() == [])
        #expect(scene.balancer.nextAttempt() == scene.now.advanced(by: .seconds(1)))
        scene.lost(1)
        #expect(scene.begun() == [.connect(endpoint: 0)])
        scene.balancer.connected(0)
        scene.pass(.seconds(1))
        #expect(scene.begun() == [.connect(endpoint: 1)])
    }

    @Test func `Round robin makes no more connections than it may`() throws {
        var scene = try Scene(Self.three, .roundRobin) { $0.connectionsMax = 2 }
        #expect(scene.begun() == [.connect(endpoint: 0), .connect(endpoint: 1)])
        #expect(scene.balancer.nextAttempt() == .distantFuture)
        scene.balancer.connected(1)
        scene.failed(0)
        #expect(scene.begun() == [.connect(endpoint: 2)])
    }

    // Further connections

    @Test func `A further connection goes where the fewest are, and its failure holds up no call`() throws {
        var scene = try Scene("127.0.0.1:1,127.0.0.1:2", .roundRobin)
        if case .none = scene.balancer.further(now: scene.now) {} else { Issue.record("nothing is ready") }
        _ = scene.begun()
        scene.balancer.connected(0)
        scene.balancer.connected(1)
        scene.balancer.connected(0)
        guard case .connect(endpoint: 1) = scene.balancer.further(now: scene.now) else {
            return #expect(Bool(false), "one has two connections")
        }
        scene.failed(1)
        guard case .wait(server: 1, let pause) = scene.balancer.further(now: scene.now) else {
            return #expect(Bool(false), "connecting just failed")
        }
        #expect(pause.until == scene.now.advanced(by: .seconds(1)))
        #expect(scene.balancer.outage(now: scene.now) == nil)
        scene.lost(0)
        #expect(scene.balancer.endpoint(0)?.isReady == true)
    }

    // Names

    @Test func `A name is looked up first, and its addresses take its place`() throws {
        var scene = try Scene("auth:1,127.0.0.1:2")
        #expect(scene.begun() == [.lookUp(server: 0)])
        #expect(scene.lookedUp(0, [4, 5, 4]) == [0])
        #expect(scene.balancer.endpoints.map(\.server) == [0, 0, 1])
        #expect(scene.begun() == [.connect(endpoint: 2)])
        scene.failed(2)
        #expect(scene.begun() == [.connect(endpoint: 3)])
    }

    @Test func `A name that cannot be looked up pauses, and the next server is tried`() throws {
        for isEmpty in [false, true] {
            var scene = try Scene("auth:1,127.0.0.1:2")
            _ = scene.begun()
            _ = isEmpty ? scene.lookedUp(0, []) : scene.lookupFailed(0)
            #expect(scene.begun() == [.connect(endpoint: 1)])
            scene.failed(1)
            #expect(scene.balancer.outage(now: scene.now) != nil)
            scene.pass(.seconds(1))
            #expect(scene.begun() == [.lookUp(server: 0)])
        }
    }

    @Test func `After a failure the name is looked up again, but not at each`() throws {
        var scene = try Scene("auth:1")
        _ = scene.begun()
        _ = scene.lookedUp(0, [4])
        #expect(scene.begun() == [.connect(endpoint: 1)])
        scene.failed(1)
        scene.pass(.seconds(1))
        #expect(scene.begun() == [.connect(endpoint: 1)])
        scene.failed(1)
        scene.pass(.seconds(4))
        #expect(scene.begun() == [.lookUp(server: 0)])
        // A second answer to one question has no effect.
        #expect(scene.lookupFailed(0) == [])
        #expect(scene.lookupFailed(0) == [])
        #expect(scene.begun() == [.connect(endpoint: 1)])
    }

    @Test func `Round robin leaves addresses that the name no longer has, and keeps the others as they are`() throws {
        var scene = try Scene("auth:1", .roundRobin)
        _ = scene.begun()
        _ = scene.lookedUp(0, [4, 5])
        #expect(scene.begun() == [.connect(endpoint: 1), .connect(endpoint: 2)])
        scene.balancer.connected(1)
        scene.balancer.connected(2)
        scene.pass(.seconds(60))
        scene.lost(2)
        scene.pass(.seconds(1))
        #expect(scene.begun() == [.lookUp(server: 0)])
        #expect(scene.lookedUp(0, [6, 4]) == [2])
        #expect(scene.balancer.endpoint(1)?.isReady == true)
        #expect(scene.begun() == [.connect(endpoint: 3)])
        // Events of the endpoint that is gone have no effect.
        scene.failed(2)
        scene.lost(2)
        scene.balancer.connected(2)
        #expect(scene.balancer.endpoints.map(\.id) == [3, 1])
    }

    @Test func `A channel uses so many addresses of a name`() throws {
        for count in [16, 17] {
            var scene = try Scene("auth:1", .roundRobin)
            _ = scene.begun()
            _ = scene.lookedUp(0, Array(0..<UInt8(count)))
            #expect(scene.balancer.endpoints.count == 16)
        }
    }
}
