import Base
import Rules
import TestSupport
import Testing

@testable import Identity

@Suite struct GuessBudgetsTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    private func guess(
        account: UInt64, address: UInt64 = 50, isKnown: Bool = false, tenant: UInt64 = 1, kind: Guess.Kind = .password
    ) -> Guess {
        Guess(
            kind: kind, account: account, source: address, isKnown: isKnown, address: address, tenant: tenant, caller: 9
        )
    }

    private func isAdmitted(_ budgets: GuessBudgets, _ guess: Guess) -> Bool {
        if case .admitted = budgets.admit(guess, now: now) { true } else { false }
    }

    @Test func oneTenantCannotShutAnAddressOutOfAnother() {
        let budgets = GuessBudgets(limits: Limits())
        let lies = (0..<1_000).count { isAdmitted(budgets, guess(account: 100 + UInt64($0), tenant: 1)) }
        #expect(lies == 30)
        // The lying tenant used ten of the 30 over all tenants: the others have twenty left, and only three liars use
        // up all.
        let others = (0..<30).count { isAdmitted(budgets, guess(account: 5_000 + UInt64($0), tenant: 10 + UInt64($0))) }
        #expect(others == 20)
    }

    /// The attacker has countless accounts, each with wrong passwords of its own, and countless addresses. What
    /// another tenant's account and address have spent stays spent.
    @Test func oneTenantsGuessesDoNotPushOutAnothers() {
        var limits = Limits()
        limits.throttleEntriesMax = 16 * 64
        limits.strangersWaitingMax = 0
        let budgets = GuessBudgets(limits: limits)
        let victim = guess(account: 7, address: 51)
        for _ in 0..<6 { _ = isAdmitted(budgets, victim) }
        let scan = (0..<30).map { guess(account: 500 + UInt64($0), address: 52) }
        for one in scan { #expect(isAdmitted(budgets, one)) }
        #expect(!isAdmitted(budgets, victim) && !isAdmitted(budgets, guess(account: 600, address: 52)))
        for number in 0..<4_000 as Range<UInt64> {
            let attack = guess(account: 1_000_000 + number * 37, address: 2_000_000 + number * 41, tenant: 2)
            budgets.add(20, attack, at: now)
        }
        #expect(!isAdmitted(budgets, victim))
        #expect(!isAdmitted(budgets, guess(account: 601, address: 52)))
    }

    @Test func whatIsRefusedByOneBudgetCostsNothingInTheOthers() {
        let budgets = GuessBudgets(limits: Limits())
        for account in 0..<30 { #expect(isAdmitted(budgets, guess(account: 100 + UInt64(account)))) }
        // The address has nothing left; the account that it tries is charged nothing, however often.
        for _ in 0..<1_000 { #expect(!isAdmitted(budgets, guess(account: 7))) }
        for _ in 0..<6 { #expect(isAdmitted(budgets, guess(account: 7, address: 51))) }
        #expect(!isAdmitted(budgets, guess(account: 7, address: 51)))
    }

    @Test func aKnownSourceIsNotAskedWhereElseItsAddressGuessed() {
        let budgets = GuessBudgets(limits: Limits())
        for account in 0..<60 { _ = isAdmitted(budgets, guess(account: 100 + UInt64(account))) }
        #expect(isAdmitted(budgets, guess(account: 7, isKnown: true)))
        #expect(!isAdmitted(budgets, guess(account: 8)))
    }

    @Test func signingInWithTheRightPasswordsCostsAnAddressNothing() {
        let budgets = GuessBudgets(limits: Limits())
        for account in 0..<1_000 {
            guard case .admitted(let charge) = budgets.admit(guess(account: 100 + UInt64(account)), now: now) else {
                Issue.record("refused at \(account)")
                return
            }
            if account.isMultiple(of: 2) { _ = budgets.succeeded(charge) } else { budgets.notTried(charge) }
            #expect(charge.overflow == 0)
        }
    }

    @Test func passwordsAndQuestionsAreCountedApart() {
        let budgets = GuessBudgets(limits: Limits())
        for account in 0..<40 { _ = isAdmitted(budgets, guess(account: 100 + UInt64(account), kind: .probe)) }
        #expect(isAdmitted(budgets, guess(account: 7)))
        #expect(!isAdmitted(budgets, guess(account: 7, kind: .probe)))
    }

    @Test func tenantsAndCallersNeverRefuseAndMakeStrangersWait() {
        var limits = Limits()
        limits.guessesPerTenantAndHour = 20
        let budgets = GuessBudgets(limits: limits)
        var overflows: [Double] = []
        for number in 0..<40 {
            let guess = guess(account: 100 + UInt64(number), address: 1_000 + UInt64(number))
            guard case .admitted(let charge) = budgets.admit(guess, now: now) else {
                Issue.record("refused at \(number)")
                return
            }
            overflows.append(charge.overflow)
        }
        #expect(overflows.prefix(20).allSatisfy { $0 == 0 })
        #expect(overflows.dropFirst(20).allSatisfy { $0 > 0 } && overflows.last == 1)
        guard case .admitted(let charge) = budgets.admit(guess(account: 7, isKnown: true), now: now) else {
            Issue.record("a known source was refused")
            return
        }
        #expect(charge.overflow == 0)
    }

    @Test func aCallersGuessesCountInAllItsTenantsTogether() {
        var limits = Limits()
        limits.guessesPerCallerAndHour = 20
        let budgets = GuessBudgets(limits: limits)
        var overflows: [Double] = []
        for number in 0..<22 as Range<UInt64> {
            let guess = guess(account: 100 + number, address: 1_000 + number, tenant: 10 + number)
            guard case .admitted(let charge) = budgets.admit(guess, now: now) else {
                Issue.record("refused at \(number)")
                return
            }
            overflows.append(charge.overflow)
        }
        #expect(overflows.prefix(20).allSatisfy { $0 == 0 })
        #expect(overflows.dropFirst(20).allSatisfy { $0 > 0 })
    }

    /// Whatever is admitted, given back and added, in any order, no budget traps and every wait ends.
    @Test func noOrderOfThingsLocksAnybodyOut() {
        var random = SeededRandom.printed()
        for _ in 0..<20 {
            let budgets = GuessBudgets(limits: Limits())
            var now = now
            var charges: [GuessBudgets.Charge] = []
            for _ in 0..<400 {
                now = now + [.zero, .seconds(1), .minutes(15), .days(-1)][random.below(4)]
                let guess = guess(
                    account: UInt64(random.below(3)), address: UInt64(random.below(4)), isKnown: random.below(4) == 0,
                    tenant: UInt64(1 + random.below(2)), kind: random.below(3) == 0 ? .probe : .password)
                switch budgets.admit(guess, now: now) {
                case .admitted(let charge): charges.append(charge)
                case .refused(let wait, _): #expect(wait > .zero && wait <= .hours(1))
                }
                guard !charges.isEmpty else { continue }
                switch random.below(6) {
                case 0: _ = budgets.succeeded(charges.remove(at: random.below(charges.count)))
                case 1: budgets.notTried(charges.remove(at: random.below(charges.count)))
                case 2: budgets.add(random.below(100), guess, at: now)
                case 3: budgets.forgive(account: guess.account)
                default: break
                }
            }
        }
    }
}
