/// Chooses the next rate to try: doubled until one fails, halved until one holds, then in between.
struct RateSearch {
    private(set) var best: Int?
    private(set) var lowestFailed: Int?
    private(set) var next: Int?
    private let precisionPercent: Int
    private let most: Int

    init(from: Int, precisionPercent: Int, most: Int = Int(RateSchedule.rateMax)) {
        next = min(from, most)
        self.precisionPercent = precisionPercent
        self.most = most
    }

    /// Notes whether the objectives held at `next`.
    mutating func note(_ holds: Bool) {
        guard let rate = next else { return }
        if holds { best = rate } else { lowestFailed = rate }
        switch (best, lowestFailed) {
        case (let best?, nil): next = best == most ? nil : min(most, best * 2)
        case (nil, let failed?): next = failed <= 1 ? nil : failed / 2
        case (let best?, let failed?):
            // On a noisy machine a rate can hold that a lower one did not: then the search ends as well.
            let isNarrow = failed - best <= max(1, best * precisionPercent / 100)
            next = isNarrow || failed <= best ? nil : best + (failed - best) / 2
        case (nil, nil): break
        }
    }
}
