import Base
import Messages

/// The quotas of a credential that a command line names, and the paths by which the mask of an update names them.
///
/// `postern apikey`, `postern service-account` and `postern certificate` take these flags.
struct CallerQuotaFlags {
    static let all = [
        Flag("quota-mutations-per-second", "COUNT", "changes it may make; 0: the default of its role"),
        Flag("quota-written-bytes-per-hour", "COUNT", "what its changes may add; 0: the default"),
        Flag("quota-sms-per-hour", "COUNT", "codes sent by SMS, over all tenants; 0: the default"),
    ]

    private var quotas = CallerQuotas()
    private(set) var paths: [Text] = []

    init(_ arguments: Arguments) throws(CommandError) {
        try note("quota-mutations-per-second", "quotas.mutations_per_second", \.mutationsPerSecond, arguments)
        try note("quota-written-bytes-per-hour", "quotas.written_bytes_per_hour", \.writtenBytesPerHour, arguments)
        try note("quota-sms-per-hour", "quotas.sms_per_hour", \.smsPerHour, arguments)
    }

    /// For a new credential. Nil when no flag is given.
    var given: CallerQuotas? { paths.isEmpty ? nil : quotas }

    private mutating func note(
        _ flag: String, _ path: Text, _ quota: WritableKeyPath<CallerQuotas, Int64>, _ arguments: Arguments
    ) throws(CommandError) {
        guard let value = try arguments.integer(flag, in: 0...Int64.max) else { return }
        quotas[keyPath: quota] = value
        paths.append(path)
    }
}
