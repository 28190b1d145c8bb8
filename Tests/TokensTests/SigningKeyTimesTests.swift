import Base
import TestSupport
import Testing

@testable import Tokens

/// Random lives of signing keys, on a clock that also stands still and goes back.
@Suite struct SigningKeyTimesTests {
    /// Does as `TokenSigner` does, without keys and store.
    private struct Model {
        var keys: [SigningKeyTimes] = []
        var now = Timestamp(seconds: 1_800_000_000)
        var latestIssued = Timestamp.zero
        var hasSigned = Int64.min
        /// The latest time that the clock has ever shown: anything that expired by then may be gone.
        var latest = Timestamp.zero

        init() { rotate(ahead: .zero) }

        mutating func rotate(ahead: Duration) {
            let signsFrom = now + ahead
            for index in keys.indices where keys[index].retiresAt == nil {
                keys[index].retiresAt = keys[index].retirement(
                    bySuccessorFrom: signsFrom, lastIssuedAt: latestIssued, lifetime: .hours(1))
            }
            let sequence = (keys.map(\.sequence).max() ?? 0) + 1
            keys.append(SigningKeyTimes(sequence: sequence, createdAt: now, signsFrom: signsFrom))
        }

        mutating func sign() -> SigningKeyTimes {
            let newestFirst = keys.sorted { $0.sequence > $1.sequence }
            let key = SigningKeyTimes.signing(in: newestFirst, at: now, hasSigned: hasSigned) { $0 }!
            hasSigned = max(hasSigned, key.sequence)
            latestIssued = max(latestIssued, now + .minutes(1))
            return key
        }

        mutating func advance(by duration: Duration) {
            latest = max(latest, now)
            now = now + duration
            latest = max(latest, now)
        }
    }

    /// With the first seed, the clock once jumped ahead and back over a key that waited, and an older key signed again.
    @Test(arguments: [17_222_592_478_926_562_072, nil] as [UInt64?])
    func everyTokenOutlivesEveryRotationOnEveryClock(_ seed: UInt64?) {
        var random = seed.map { SeededRandom(seed: $0) } ?? SeededRandom.printed()
        for _ in 0..<3_000 {
            var model = Model()
            var alive: [(sequence: Int64, expiresAt: Timestamp)] = []
            var newestSigned: Int64 = 0
            for _ in 0..<60 {
                switch random.below(5) {
                case 0: model.rotate(ahead: .minutes(Int64([0, 0, 10, 90, 1_440][random.below(5)])))
                case 1: model.keys.removeAll { $0.isRetired(at: model.now) }
                case 2: model.advance(by: .minutes(Int64([0, 1, 29, 59, 240, 1_500][random.below(6)])))
                case 3: model.advance(by: .minutes(Int64([-1, -59, -300, 0][random.below(4)])))
                default:
                    let key = model.sign()
                    // A key never signs again after a newer one took over from it.
                    #expect(key.sequence >= newestSigned)
                    newestSigned = key.sequence
                    alive.append((key.sequence, model.now + .hours(1)))
                }
                alive.removeAll { $0.expiresAt <= model.latest }
                for token in alive {
                    let key = model.keys.first { $0.sequence == token.sequence }
                    #expect(key?.isRetired(at: model.now) == false)
                }
            }
        }
    }

    @Test func keysOfOneMomentSignInTheOrderTheyWereMade() {
        var model = Model()
        for _ in 0..<10 {
            model.rotate(ahead: .zero)
            #expect(model.sign().sequence == model.keys.last?.sequence)
        }
    }

    @Test func aKeyThatHasSignedGoesOnWhenTheClockIsSetBack() {
        var model = Model()
        model.rotate(ahead: .hours(1))
        #expect(model.sign().sequence == 1)
        model.advance(by: .hours(1))
        #expect(model.sign().sequence == 2)
        model.advance(by: .hours(-2))
        #expect(model.sign().sequence == 2)
    }

    @Test func keysWithoutNumbersKeepTheOrderTheyHad() {
        func key(_ created: Int64, _ signs: Int64, retires: Int64? = nil, sequence: Int64 = 0) -> SigningKeyTimes {
            SigningKeyTimes(
                sequence: sequence, createdAt: Timestamp(seconds: created), signsFrom: Timestamp(seconds: signs),
                retiresAt: retires.map { Timestamp(seconds: $0) })
        }
        let keys: [(id: Text, times: SigningKeyTimes)] = [
            ("waiting", key(5, 500, retires: 900)), ("newest", key(5, 5)), ("b", key(1, 1, retires: 90)),
            ("a", key(1, 1, retires: 90)), ("numbered", key(0, 0, sequence: 7)), ("second", key(1, 2, retires: 80)),
        ]
        let numbers = SigningKeyTimes.numbered(keys).map(\.sequence)
        let order = zip(keys.map(\.id), numbers).sorted { $0.1 < $1.1 }.map(\.0)
        #expect(order == ["a", "b", "second", "waiting", "newest", "numbered"])
        #expect(numbers.filter { $0 >= 0 } == [7])
        // The order in which the store lists the keys does not matter.
        let reversed = SigningKeyTimes.numbered(keys.reversed()).map(\.sequence)
        #expect(reversed == numbers.reversed())
    }
}
