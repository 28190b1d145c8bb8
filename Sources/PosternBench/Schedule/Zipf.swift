import Glibc

/// Numbers from 0 on, of which the first are the most frequent: number k comes as often as 1 / (k + 1)^exponent.
///
/// By rejection-inversion (W. Hörmann, G. Derflinger, 1996): a number takes a few logarithms, however many there are.
struct Zipf: Sendable {
    static let exponentMax = 5.0
    private let count: Int
    private let exponent: Double
    private let first: Double
    private let last: Double
    private let squeeze: Double

    /// `exponent` 0 makes all numbers equally frequent. `count` is at least 1.
    init(count: Int, exponent: Double) {
        self.count = max(1, count)
        self.exponent = min(max(0, exponent), Self.exponentMax)
        first = Self.integral(1.5, self.exponent) - 1
        last = Self.integral(Double(self.count) + 0.5, self.exponent)
        squeeze = 2 - Self.inverse(Self.integral(2.5, self.exponent) - pow(2, -self.exponent), self.exponent)
    }

    /// The relative frequency of number k.
    static func weight(of number: Int, exponent: Double) -> Double { pow(Double(number + 1), -exponent) }

    func next(_ random: inout SeededGenerator) -> Int {
        if exponent == 0 || count == 1 { return random.below(count) }
        while true {
            let drawn = last + random.unit() * (first - last)
            let x = Self.inverse(drawn, exponent)
            let number = min(Double(count), max(1, x.rounded()))
            if number - x <= squeeze || drawn >= Self.integral(number + 0.5, exponent) - pow(number, -exponent) {
                return Int(number) - 1
            }
        }
    }

    /// The integral of x^-exponent.
    private static func integral(_ x: Double, _ exponent: Double) -> Double {
        exponent == 1 ? log(x) : (pow(x, 1 - exponent) - 1) / (1 - exponent)
    }

    private static func inverse(_ y: Double, _ exponent: Double) -> Double {
        exponent == 1 ? exp(y) : pow(max(0, 1 + y * (1 - exponent)), 1 / (1 - exponent))
    }
}
