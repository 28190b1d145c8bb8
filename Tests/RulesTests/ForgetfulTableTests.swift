import Base
import Rules
import TestSupport
import Testing

@Suite struct ForgetfulTableTests {
    private struct Debt: Fading, Equatable {
        var amount: Int
        var meaningfulUntil: Timestamp
    }

    private static func debt(_ amount: Int) -> Debt {
        Debt(amount: amount, meaningfulUntil: Timestamp(seconds: Int64(amount)))
    }

    @Test func `Values are found, replaced and removed by their names`() {
        var table = ForgetfulTable<Text, Debt>(countMax: 3)
        for name in ["a", "b", "c"] as [Text] { table[name] = Self.debt(1) }
        table["b"] = Self.debt(2)
        #expect(table.count == 3 && table["b"] == Self.debt(2) && table["d"] == nil)
        table["a"] = nil
        table["a"] = nil
        #expect(table.count == 2 && table["a"] == nil && table["c"] == Self.debt(1))
    }

    @Test func `A full table forgets what says least, and no more than it must`() {
        var table = ForgetfulTable<Text, Debt>(countMax: 10)
        for index in 0..<10 { table[Text("n\(index)")] = Self.debt(100 + index) }
        table["new"] = Self.debt(500)
        #expect(table.count == 10 && table["n0"] == nil && table["new"] != nil)
        for index in 1..<10 { #expect(table[Text("n\(index)")] == Self.debt(100 + index)) }
    }

    @Test func `A flood of names that say nothing leaves those that say something`() {
        var table = ForgetfulTable<Text, Debt>(countMax: 1_000)
        for index in 0..<900 { table[Text("debtor\(index)")] = Self.debt(1_000 + index) }
        for index in 0..<50_000 { table[Text("flood\(index)")] = Self.debt(0) }
        let kept = (0..<900).count { table[Text("debtor\($0)")] != nil }
        // Of the 16 values that are looked at, one soon has no meaning.
        #expect(kept > 800, "\(kept) of 900 are left")
        #expect(table.count == 1_000)
    }

    @Test func `Any sequence of changes leaves what a dictionary has, until the table is full`() {
        var random = SeededRandom.printed()
        var table = ForgetfulTable<Text, Debt>(countMax: 20)
        var expected: [Text: Debt] = [:]
        for _ in 0..<2_000 {
            let name = Text("n\(random.below(20))")
            let value = random.below(3) == 0 ? nil : Self.debt(random.below(50))
            table[name] = value
            expected[name] = value
            #expect(table.count == expected.count)
        }
        for number in 0..<20 { #expect(table[Text("n\(number)")] == expected[Text("n\(number)")]) }
    }
}
