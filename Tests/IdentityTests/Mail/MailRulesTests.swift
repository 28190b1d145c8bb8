import Base
import Messages
import Testing

@testable import Identity
@testable import Rules

@Suite struct MailRulesTests {
    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 +0000"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 +0000"), (1_795_240_038, "Sat, 21 Nov 2026 05:47:18 +0000"),
            (4_102_444_799, "Thu, 31 Dec 2099 23:59:59 +0000"), (-5, "Thu, 01 Jan 1970 00:00:00 +0000"),
        ] as [(Int64, String)])
    func aDateIsWrittenAsMailWantsIt(_ seconds: Int64, _ text: String) {
        #expect(MailMessage.date(Timestamp(seconds: seconds)) == text)
    }

    @Test func waitsDoubleToSixHoursAndGiveUpAfterTheLast() {
        var waits: [Duration] = []
        for attempts in 1...11 { waits.append(Mailer.backoff(afterAttempts: attempts, random: 0)) }
        #expect(waits.first == .seconds(24) && waits.last == .milliseconds(6 * 3_600_000 * 4 / 5))
        #expect(zip(waits, waits.dropFirst()).allSatisfy { $0 <= $1 })
        for random in [0, 1, UInt64.max / 3, .max] {
            let wait = Mailer.backoff(afterAttempts: 1, random: random)
            #expect(wait >= .seconds(24) && wait <= .seconds(36))
        }
        var message = OutboxMessage(state: .pending)
        for attempt in 1...12 {
            message.settle(.failed("no"), random: 7, now: Timestamp(seconds: 1_000))
            #expect(message.state == (attempt < 12 ? .pending : .dead))
            #expect((message.nextAttemptAtMicros > 0) == (attempt < 12))
        }
    }

    @Test func `A message that nobody was asked to take waits some seconds, however often that happens`() {
        let now = Timestamp(seconds: 1_000)
        var message = OutboxMessage(state: .pending, createdAtMicros: now.microseconds, attempts: 11)
        for _ in 0..<50 {
            message.settle(.overloaded, random: 7, now: now)
            #expect(message.state == .pending && message.attempts == 11 && !message.lastError.isEmpty)
            #expect(message.nextAttemptAtMicros > (now + .seconds(3)).microseconds)
            #expect(message.nextAttemptAtMicros < (now + .seconds(7)).microseconds)
        }
        // A code that will have expired by then is not sent any more.
        message.settle(.overloaded, isWorthDelivering: { $0 <= now }, random: 7, now: now)
        #expect(message.state == .dead && message.nextAttemptAtMicros == 0)
    }

    @Test(arguments: [(-5, 5), (10, 5), (100, 10), (3_600, 60)] as [(Int64, Int64)])
    func `A mail that nobody was asked to take waits the longer the older it is, an SMS does not`(
        age: Int64, seconds: Int64
    ) {
        for random in [0, 1, UInt64.max / 3, .max] {
            let wait = Mailer.pause(atAge: .seconds(age), isUrgent: false, random: random)
            #expect(wait >= .milliseconds(seconds * 800) && wait <= .milliseconds(seconds * 1_200))
            let urgent = Mailer.pause(atAge: .seconds(age), isUrgent: true, random: random)
            #expect(urgent >= .seconds(4) && urgent <= .seconds(6))
        }
    }

    @Test func `A mail that servers get whole and do not answer is sent a few times, far apart`() {
        let now = Timestamp(seconds: 1_000)
        var message = OutboxMessage(state: .pending, attempts: 2)
        var waits: [Duration] = []
        for count in 1..<Mailer.unansweredMax {
            message.settle(.unanswered("no answer"), unansweredCount: count, random: 0, now: now)
            #expect(message.state == .pending && message.lastError == "no answer")
            waits.append(Timestamp(microseconds: message.nextAttemptAtMicros) - now)
        }
        #expect(waits == [.minutes(8), .minutes(96)])
        message.settle(
            .unanswered("no answer"), unansweredCount: Mailer.unansweredMax, random: 0, now: now)
        #expect(message.state == .dead && message.attempts == 5)
    }

    @Test func anHourlyQuotaRefusesAfterItsNumberAndForgets() {
        var quota = HourlyQuota(keysMax: 3)
        let start = Timestamp(seconds: 1_000_000)
        for _ in 0..<5 {
            #expect(quota.wait(1, max: 5, now: start) == .zero)
            quota.charge(1, now: start)
        }
        #expect(quota.wait(1, max: 5, now: start + .seconds(600)) == .seconds(3_000))
        #expect(quota.wait(2, max: 5, now: start) == .zero)
        #expect(quota.wait(1, max: 5, now: start + .hours(1)) == .zero)
        // A clock that went back does not make anybody wait.
        #expect(quota.wait(1, max: 5, now: start - .seconds(1)) == .zero)
        for key in 10..<20 { quota.charge(UInt64(key), now: start) }
        #expect(quota.wait(19, max: 1, now: start) > .zero)
    }

    /// A caller who makes keys without end must not make the quota forget the other keys.
    @Test func anHourlyQuotaForgetsKeysWhoseHourEndsSoonFirst() {
        var quota = HourlyQuota(keysMax: 1_000)
        let start = Timestamp(seconds: 1_000_000)
        for key in 0..<900 { quota.charge(UInt64(key), now: start) }
        quota.charge(7_000, now: start + .minutes(30))
        for key in 10_000..<10_800 { quota.charge(UInt64(key), now: start + .minutes(30)) }
        #expect(quota.wait(7_000, max: 1, now: start + .minutes(31)) == .minutes(59))
        #expect((0..<900).count { quota.count(UInt64($0), now: start + .minutes(31)) == 1 } < 900)
    }

    @Test func htmlIsEscapedAndLinksAreEncoded() {
        #expect(Text(unchecked: MailText.escaped("<a href='x'>&\"")) == "&lt;a href=&#39;x&#39;&gt;&amp;&quot;")
        let link = ActionLink.make(
            base: "https://x.example/a?b=c", .passwordReset, code: "C", tenantID: "acme",
            continueURL: "https://y.example/?q=ü&z")
        #expect(
            link.string == "https://x.example/a?b=c&mode=resetPassword&oobCode=C&tenantId=acme"
                + "&continueUrl=https%3A%2F%2Fy.example%2F%3Fq%3D%C3%BC%26z")
    }
}
