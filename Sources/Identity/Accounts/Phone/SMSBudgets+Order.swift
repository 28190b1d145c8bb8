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
        if order.isFromKnownAddress {
            charge(.knownNumber, number, Int64(server.smsPerNumberAndHour))
        } else {
            charge(.number, number, Int64(server.smsPerNumberAndHour))
            charge(.numberByDay, number, Int64(server.smsPerNumberAndDay), .hours(24))
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
}
