import Messages

/// The quotas of a credential, as `postern apikey` and `postern service-account` take them.
enum CallerQuotaFlags {
    static let all = [
        Flag("quota-mutations-per-second", "COUNT", "changes it may make; 0: the default of its role"),
        Flag("quota-written-bytes-per-hour", "COUNT", "what its changes may add; 0: the default"),
        Flag("quota-sms-per-hour", "COUNT", "codes sent by SMS, over all tenants; 0: the default"),
    ]

    /// Nil when no flag is given. All quotas are set together: a quota that is not given has the default.
    static func read(_ arguments: Arguments) throws(CommandError) -> CallerQuotas? {
        let mutations = try arguments.integer("quota-mutations-per-second", in: 0...Int64.max)
        let bytes = try arguments.integer("quota-written-bytes-per-hour", in: 0...Int64.max)
        let sms = try arguments.integer("quota-sms-per-hour", in: 0...Int64.max)
        guard mutations != nil || bytes != nil || sms != nil else { return nil }
        return CallerQuotas(
            mutationsPerSecond: mutations ?? 0, writtenBytesPerHour: bytes ?? 0, smsPerHour: sms ?? 0)
    }
}
