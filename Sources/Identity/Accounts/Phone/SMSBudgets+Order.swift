import Base
import Messages
import Rules
import Store

extension SMSBudgets {
    /// The charges for an order. A test number is sent nothing, so it is charged only the budget that bounds the rows.
    static func charges(
        for order: VerificationOrder, _ request: EndUserRequest, isTest: Bool, limits: QuotaLimits
    ) -> [Charge] {
        let settings = request.settings
        if settings.isSynthetic { return [] }
        let server = limits.limits
        var charges: [Charge] = []
        func charge(
            _ name: Name, _ value: [UInt8], _ max: Int64, _ window: Duration = .hours(1), tenantID: Text? = nil,
            quota: Quota? = nil
        ) {
            charges.append(
                Charge(
                    row: row(name, value, tenantID ?? settings.tenantID), max: max, window: window, quota: quota,
                    mayBeOverdrawn: name.isShared && order.isForSecondFactorSignIn))
        }
        if let ofUser = chargeForOverdrawing(order, settings, server) { charges.append(ofUser) }
        if let address = order.address {
            charge(.address, address.network, Int64(server.smsPerAddressAndHour * (isTest ? 10 : 1)))
        }
        if isTest { return charges }
        let number = order.number.text.bytes
        let names = numberBudgets(for: order.use)
        switch order.knownAsker {
        case .address: charge(names.known, number, Int64(server.smsPerNumberAndHour))
        case .device: charge(names.known, number + [0], Int64(server.smsPerNumberAndHour))
        case nil:
            charge(names.hour, number, Int64(server.smsPerNumberAndHour))
            charge(names.day, number, Int64(server.smsPerNumberAndDay), .hours(24))
        }
        if !order.use.subject.isEmpty {
            charge(.subject, order.use.subject, Int64(server.smsPerSubjectAndHour))
        }
        if let region = order.number.region, !settings.smsRegions.names(region) {
            charge(.region, region.text.bytes, Int64(server.smsPerRegionAndHour), quota: .regionSMS)
        }
        charge(.tenant, [], limits.smsPerHour(settings), quota: .tenantSMS)
        if let caller = request.caller, !caller.has(.projectAdmin) {
            for holder in caller.quotaHolders {
                charge(.caller, holder.id.bytes, limits.smsPerHour(holder), tenantID: .empty, quota: .callerSMS)
            }
        }
        return charges
    }

    /// The budget of the codes by which a user overdraws shared budgets: an attacker may have accounts with factors,
    /// too. Known addresses and devices are counted apart, because somebody who has only the password asks from
    /// elsewhere.
    private static func chargeForOverdrawing(
        _ order: VerificationOrder, _ settings: TenantSettings, _ limits: Limits
    ) -> Charge? {
        guard case .secondFactorSignIn(_, let uid) = order.use else { return nil }
        let source = order.knownAsker?.rawValue ?? 0
        return Charge(
            row: row(.overdrawing, uid.bytes + [0, source], settings.tenantID), max: Int64(limits.smsPerNumberAndHour),
            window: .hours(1), isForOverdrawing: true)
    }

    /// The budgets of a number. Anybody may ask for codes to sign in with a number, and anybody with an account for
    /// codes to add it. So a sign-in that waits for its second factor has budgets apart: strangers who know the number
    /// cannot spend these, and the number was proved when it became a factor.
    private static func numberBudgets(for use: VerificationUse) -> (hour: Name, day: Name, known: Name) {
        switch use {
        case .secondFactorSignIn: (.factorNumber, .factorNumberByDay, .knownFactorNumber)
        case .signIn, .link, .secondFactorEnrollment: (.number, .numberByDay, .knownNumber)
        }
    }
}

extension SMSBudgets.Name {
    /// Whether codes for different users and numbers are charged to the budget, so that strangers can spend it.
    fileprivate var isShared: Bool {
        switch self {
        case .address, .region, .tenant, .caller: true
        case .number, .numberByDay, .knownNumber, .subject, .factorNumber, .factorNumberByDay, .knownFactorNumber,
            .wrongTestCodes, .wrongFactorCodes, .wrongFactorCodesByDay, .enrollments, .overdrawing:
            false
        }
    }
}

extension VerificationOrder {
    /// Whether the code is for somebody who has shown the first factor of an account.
    fileprivate var isForSecondFactorSignIn: Bool {
        if case .secondFactorSignIn = use { true } else { false }
    }
}
