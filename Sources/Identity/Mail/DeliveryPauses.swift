import Base

extension Mailer {
    public static let attemptsMax = 12
    /// How often a mail is sent whole to a server that does not answer. Each of these servers may deliver the mail.
    static let unansweredMax = 3

    /// The back-off between the n-th failed attempt and the next: 30 s, doubled each time, six hours at most, ±20 %. A
    /// code that is good for minutes cannot wait so long: 5 s, doubled each time.
    static func backoff(afterAttempts attempts: Int, isUrgent: Bool = false, random: UInt64) -> Duration {
        let doublings = min(max(0, attempts - 1), 10)
        return spread(min((isUrgent ? 5_000 : 30_000) * Int64(1 << doublings), 6 * 3_600_000), random)
    }

    /// The pause of a message for which nobody was asked: 5 s, for a mail that waits for longer a tenth of its age, a
    /// minute at most; ±20 %.
    static func pause(atAge age: Duration, isUrgent: Bool, random: UInt64) -> Duration {
        spread(isUrgent ? 5_000 : min(max(5_000, age.microseconds / 10_000), 60_000), random)
    }

    /// The pause after a server got the whole mail for the n-th time and did not answer: ten minutes, which RFC 5321
    /// (§4.5.3.2.6) gives a server for its answer, and two hours the next time; ±20 %.
    static func pause(afterUnanswered count: Int, random: UInt64) -> Duration {
        spread(count < 2 ? 600_000 : 7_200_000, random)
    }

    private static func spread(_ milliseconds: Int64, _ random: UInt64) -> Duration {
        // Proof: all numbers here are positive and below a day.
        let spread = Int64(random % UInt64(milliseconds * 2 / 5 + 1))
        return .milliseconds(milliseconds - milliseconds / 5 + spread)
    }
}
