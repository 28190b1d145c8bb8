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
                Charge(row: row(name, value, tenantID ?? settings.tenantID), max: max, window: window, quota: quota))
        }
        if let address = order.address {
            charge(.address, address.network, Int64(server.smsPerAddressAndHour * (isTest ? 10 : 1)))
        }
        if isTest { return charges }
        let number = order.number.text.bytes
        let names = numberBudgets(for: order.use)
        if order.isFromKnownAddress {
            charge(names.known, number, Int64(server.smsPerNumberAndHour))
        } else {
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
            charge(.caller, caller.id.bytes, limits.smsPerHour(caller), tenantID: .empty, quota: .callerSMS)
        }
        return charges
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
