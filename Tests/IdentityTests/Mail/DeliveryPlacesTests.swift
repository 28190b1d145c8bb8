import Base
import Testing

@testable import Identity

/// How many messages of a tenant may be on their way.
@Suite struct DeliveryPlacesTests {
    private static let now = Instant.now

    private static func key(_ tenant: Int, _ message: Int = 0, isSMS: Bool = false) -> OutboxDueKey {
        OutboxDueKey(Timestamp(seconds: 5), Text("t\(tenant)"), Text("m\(message)"), isSMS: isSMS)
    }

    private static func room(
        _ places: DeliveryPlaces, of tenant: Int = 0, beside due: [OutboxDueKey] = [], after passed: Duration = .zero
    ) -> DeliveryRoom {
        places.room(for: Text("t\(tenant)"), beside: due, now: now.advanced(by: passed))
    }

    private static func postpone(_ key: OutboxDueKey, _ places: inout DeliveryPlaces) {
        places.ended(key, .overloaded, after: .seconds(3), now: now)
    }

    @Test func `Mails of a tenant take no places from its SMS`() {
        var places = DeliveryPlaces()
        for message in 0..<2 { places.take(Self.key(0, message)) }
        #expect(Self.room(places) == DeliveryRoom(mails: 0, sms: 2))
        places.take(Self.key(0, 2, isSMS: true))
        places.release(Self.key(0, 1))
        #expect(Self.room(places) == DeliveryRoom(mails: 1, sms: 1))
        // The row of a message may have moved to the rows of the other kind since.
        #expect(places.has(Self.key(0, 2)))
        places.release(Self.key(0, 2))
        #expect(Self.room(places) == DeliveryRoom(mails: 1, sms: 2) && places.count == 1)
    }

    @Test func `What was put off rests until the next wake, the other kind does not`() {
        var places = DeliveryPlaces()
        Self.postpone(Self.key(0), &places)
        #expect(Self.room(places) == DeliveryRoom(mails: 0, sms: 2))
        places.endRests()
        #expect(Self.room(places) == DeliveryRoom(mails: 2, sms: 2))
    }

    @Test func `Tenants that are held up have half of the places, and the others the rest`() {
        var places = DeliveryPlaces()
        let tenantCount = DeliveryPlaces.countMax
        for tenant in 0..<tenantCount { Self.postpone(Self.key(tenant), &places) }
        places.endRests()
        // Some of their messages have a place, and others get one in the same look.
        let (first, next) = (DeliveryPlaces.heldUpMax / 2, DeliveryPlaces.heldUpMax)
        for tenant in 0..<first { places.take(Self.key(tenant)) }
        let due = (first..<(next - 1)).map { Self.key($0) }
        #expect(Self.room(places, of: next, beside: due).mails == 1)
        #expect(Self.room(places, of: next, beside: due + [Self.key(next - 1)]).mails == 0)
        for key in due + [Self.key(next - 1)] { places.take(key) }
        #expect(Self.room(places, of: next).mails == 0)
        #expect(Self.room(places, of: tenantCount) == DeliveryRoom(mails: 2, sms: 2))
        // After a while they are tried like others.
        #expect(Self.room(places, of: next, after: DeliveryPlaces.heldUpFor).mails == 2)
    }

    @Test(
        arguments: [
            (.sent, .seconds(30), true), (.failed("no"), .seconds(3), true), (.sent, .milliseconds(500), false),
            (.failed("no"), .milliseconds(500), false), (nil, .milliseconds(1), false),
        ] as [(DeliveryOutcome?, Duration, Bool)])
    func `A slow delivery holds its tenant up, a quick one does not`(
        outcome: DeliveryOutcome?, duration: Duration, isHeldUp: Bool
    ) {
        var places = DeliveryPlaces()
        places.ended(Self.key(0), outcome, after: duration, now: Self.now)
        for tenant in 1...DeliveryPlaces.heldUpMax {
            Self.postpone(Self.key(tenant), &places)
            places.take(Self.key(tenant))
        }
        places.endRests()
        #expect(Self.room(places).mails == (isHeldUp ? 0 : 2))
    }

    @Test func `While few places are free a tenant has one message of each kind on its way`() {
        var places = DeliveryPlaces()
        for tenant in 1...(DeliveryPlaces.countMax / 4 * 3 + 1) { places.take(Self.key(tenant)) }
        #expect(places.isCrowded)
        #expect(Self.room(places) == DeliveryRoom(mails: 1, sms: 1))
        #expect(Self.room(places, of: 1) == DeliveryRoom(mails: 0, sms: 1))
    }
}
