import Base
import Messages
import Store
import Testing

@testable import Identity

@Suite struct DenialWritesTests {
    private let start = Timestamp(seconds: 1_800_000_000)
    private let everything = (from: Timestamp.zero, to: Timestamp(microseconds: .max))

    private func denial(
        at time: Timestamp, _ operation: Text = "SignUp", _ toggle: Toggle = .disabledUserSignup, count: Int64 = 0
    ) -> Denial {
        Denial(timeMicros: time.microseconds, toggle: toggle, operation: operation, suppressedCount: count)
    }

    private func append(
        _ denials: [Denial], to tenantID: Text = "acme", kept: Int = 10_000, inAll: Int = 4_000_000,
        atLeast: Int = 100, isTimeProven: Bool = true, in fixture: Fixture
    ) async throws {
        var limits = Limits()
        limits.denialsKeptPerTenant = kept
        limits.denialsKeptInAll = inAll
        limits.denialsKeptAtLeast = atLeast
        try await fixture.store.write { [limits] in
            try $0.appendDenials(denials, tenantID: tenantID, limits: limits, deletesOldCounts: isTimeProven)
        }
    }

    @Test func allTenantsTogetherKeepNoMoreThanTheirBound() async throws {
        try await withFixture { fixture in
            for tenantID in ["a", "b", "c"] as [Text] {
                for _ in 0..<20 {
                    try await append([denial(at: start)], to: tenantID, inAll: 30, atLeast: 3, in: fixture)
                }
            }
            // The first tenant had room, the second until all was full, and the third has the minimum that every
            // tenant has.
            #expect(try sequences("a", in: fixture).count == 20)
            #expect(try sequences("b", in: fixture) == Array(11...20))
            #expect(try sequences("c", in: fixture) == [18, 19, 20])
            // A tenant that has many denials keeps as many, the newest.
            try await append([denial(at: start)], to: "a", inAll: 30, atLeast: 3, in: fixture)
            #expect(try sequences("a", in: fixture) == Array(2...21))
        }
    }

    private func sequences(_ tenantID: Text = "acme", in fixture: Fixture) throws -> [Int64] {
        try fixture.store.read { try $0.denials(tenantID: tenantID, after: 0, limit: .max).map(\.sequence) }
    }

    @Test func refusalsAreNumberedFromOnePerTenant() async throws {
        try await withFixture { fixture in
            #expect(try fixture.store.read { try $0.lastDenialSequence(tenantID: "acme") } == 0)
            try await append([denial(at: start), denial(at: start)], in: fixture)
            try await append([denial(at: start)], to: "acm", in: fixture)
            try await append([denial(at: start)], in: fixture)
            #expect(try sequences(in: fixture) == [1, 2, 3])
            #expect(try sequences("acm", in: fixture) == [1])
            #expect(try fixture.store.read { try $0.lastDenialSequence(tenantID: "acme") } == 3)
        }
    }

    @Test func theNewestAreKeptUpToTheLimit() async throws {
        try await withFixture { fixture in
            for _ in 0..<5 { try await append([denial(at: start)], kept: 5, in: fixture) }
            #expect(try sequences(in: fixture) == [1, 2, 3, 4, 5])
            try await append([denial(at: start)], kept: 5, in: fixture)
            #expect(try sequences(in: fixture) == [2, 3, 4, 5, 6])
            // More denials come at once than may stay.
            try await append((0..<12).map { _ in denial(at: start) }, kept: 5, in: fixture)
            #expect(try sequences(in: fixture) == [14, 15, 16, 17, 18])
            // A lower limit takes effect with the next refusal.
            try await append([denial(at: start)], kept: 2, in: fixture)
            #expect(try sequences(in: fixture) == [18, 19])
            #expect(try fixture.rows(Tables.denials).count == 2)
        }
    }

    @Test func whatWasTrimmedIsStillCounted() async throws {
        try await withFixture { fixture in
            for _ in 0..<10 { try await append([denial(at: start)], kept: 3, in: fixture) }
            let counts = try fixture.store.read {
                try $0.denialCounts(tenantID: "acme", from: everything.from, to: everything.to, limit: 10).counts
            }
            #expect(counts.map(\.count) == [10])
        }
    }

    @Test func followersReadOnFromWhereTheyAre() async throws {
        try await withFixture { fixture in
            try await append((0..<10).map { denial(at: start + .seconds($0)) }, in: fixture)
            func after(_ sequence: Int64, _ limit: Int, tenantID: Text = "acme") throws -> [Int64] {
                try fixture.store.read {
                    try $0.denials(tenantID: tenantID, after: sequence, limit: limit).map(\.sequence)
                }
            }
            #expect(try after(0, 3) == [1, 2, 3])
            #expect(try after(3, 3) == [4, 5, 6])
            #expect(try after(8, 100) == [9, 10])
            #expect(try after(10, 100).isEmpty)
            #expect(try after(0, 100, tenantID: "acm").isEmpty)
        }
    }

    @Test func listsGoBackFromTheNewestWithinATimeRange() async throws {
        try await withFixture { fixture in
            try await append((0..<10).map { denial(at: start + .seconds($0)) }, in: fixture)
            try await append((0..<3).map { denial(at: start + .seconds($0)) }, to: "acmf", in: fixture)
            func before(_ sequence: Int64?, _ from: Int64, _ to: Int64, _ limit: Int = 100) throws -> [Int64] {
                let (from, to) = (start + .seconds(from), start + .seconds(to))
                return try fixture.store.read { transaction in
                    let bounds = PageBounds(itemMax: limit, limits: Limits())
                    let query = try DenialQuery(
                        email: "", phoneNumber: "", decisionID: "", fromMicros: from.microseconds,
                        toMicros: to.microseconds,
                        identifiers: DenialIdentifiers(masterKey: fixture.masterKey), limits: Limits())
                    return try transaction.denials(
                        query, tenantID: "acme", secret: Secret("key"), before: sequence, bounds: bounds
                    ).items.map { try Denial(decoding: $0).sequence }
                }
            }
            #expect(try before(nil, 0, 10) == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
            #expect(try before(nil, 0, 10, 3) == [10, 9, 8])
            #expect(try before(8, 0, 10, 3) == [7, 6, 5])
            #expect(try before(1, 0, 10).isEmpty)
            // The lower bound is included, the upper bound is not.
            #expect(try before(nil, 3, 6) == [6, 5, 4])
            #expect(try before(6, 3, 6) == [5, 4])
            #expect(try before(nil, 20, 30).isEmpty)
            #expect(try before(nil, -9, 0).isEmpty)
        }
    }

    @Test func countsArePerHourToggleAndOperation() async throws {
        let hour = Timestamp(seconds: 1_800_000_000 - 1_800_000_000 % 3_600)
        try await withFixture { fixture in
            try await append(
                [
                    denial(at: hour), denial(at: hour + .hours(1) - .microseconds(1)), denial(at: hour + .hours(1)),
                    denial(at: hour, "Delete", .disabledUserDeletion), denial(at: hour, "SignIn"),
                    denial(at: hour, count: 40),
                ], in: fixture)
            try await append([denial(at: hour)], to: "acm", in: fixture)
            func found(_ from: Timestamp, _ to: Timestamp, _ limit: Int = 100) throws -> DenialCounts {
                try fixture.store.read {
                    try $0.denialCounts(tenantID: "acme", from: from, to: to, limit: limit)
                }
            }
            func counts(_ from: Timestamp, _ to: Timestamp, _ limit: Int = 100) throws -> [String] {
                try found(from, to, limit).counts.map { count in
                    let hours = (Timestamp(microseconds: count.hourStartMicros) - hour) / Duration.hours(1)
                    return "\(Int(hours)) \(count.operation) \(count.toggle.rawValue) \(count.count)"
                }
            }
            let first = ["0 Delete 2 1", "0 SignUp 1 42", "0 SignIn 1 1"]
            #expect(try counts(hour, hour + .hours(2)) == ["1 SignUp 1 1"] + first)
            #expect(try counts(hour + .minutes(59), hour + .hours(1)) == first)
            #expect(try counts(hour + .hours(1), hour + .hours(9)) == ["1 SignUp 1 1"])
            // The upper bound is within the hour, and the hour is touched.
            #expect(try counts(hour, hour + .minutes(1)) == first)
            #expect(try counts(everything.from, everything.to).count == 4)
            #expect(try found(everything.from, everything.to, 4).cutBefore == nil)
            #expect(try counts(Timestamp(microseconds: .min), Timestamp(microseconds: .min)).isEmpty)
            #expect(try counts(hour + .hours(2), hour + .hours(9)).isEmpty)
            // No hour is cut in two, and the next request begins where this one was cut.
            #expect(try counts(hour, hour + .hours(2), 1) == ["1 SignUp 1 1"])
            let cut = try found(hour, hour + .hours(2), 1).cutBefore
            #expect(cut == hour + .hours(1))
            #expect(try counts(hour, cut ?? .zero, 1) == first)
            #expect(try found(hour, cut ?? .zero, 1).cutBefore == nil)
        }
    }

    /// The hour of each count, oldest first, in hours since 1970.
    private func hours(_ tenantID: Text = "acme", in fixture: Fixture) throws -> [Int64] {
        let counts = try fixture.store.read {
            try $0.denialCounts(tenantID: tenantID, from: everything.from, to: everything.to, limit: .max).counts
        }
        return counts.reversed().map { $0.hourStartMicros / Duration.hours(1).microseconds }
    }

    @Test func countsAreDeletedAfterNinetyDays() async throws {
        let hour = Timestamp(seconds: 1_800_000_000 - 1_800_000_000 % 3_600)
        let number = hour.microseconds / Duration.hours(1).microseconds
        try await withFixture { fixture in
            for tenantID in ["acme", "acm"] as [Text] {
                let denials = [denial(at: hour), denial(at: hour, "SignIn"), denial(at: hour + .hours(1))]
                try await append(denials, to: tenantID, in: fixture)
            }
            try await append([denial(at: hour + .days(90))], in: fixture)
            #expect(try hours(in: fixture) == [number, number, number + 1, number + 2_160])
            // Without a clock that is proven, nothing is deleted because of its age.
            let later = denial(at: hour + .days(90) + .hours(1))
            try await append([later], isTimeProven: false, in: fixture)
            #expect(try hours(in: fixture).count == 5)
            try await append([later], in: fixture)
            #expect(try hours(in: fixture) == [number + 1, number + 2_160, number + 2_161])
            #expect(try hours("acm", in: fixture) == [number, number, number + 1])
        }
    }

    /// An older server never deleted any.
    @Test func manyOldCountsAreDeletedAFewAtATime() async throws {
        try await withFixture { fixture in
            let old = (0..<200).map { denial(at: start + .hours(Int64($0))) }
            try await append(old, isTimeProven: false, in: fixture)
            let now = start + .days(400)
            var left: [Int] = []
            for _ in 0..<5 {
                try await append([denial(at: now)], in: fixture)
                left.append(try hours(in: fixture).count)
            }
            #expect(left == [150, 99, 48, 1, 1])
        }
    }
}
