import Base
import Messages

/// `--where`: the conditions that select tenants.
struct TenantFilterFlag {
    static let flag = Flag(
        "where", "CONDITION[ and …]",
        "id=PREFIX, name=PART, or a setting as in update: enable-anonymous-user=true; all: every tenant")

    /// Nil: all tenants.
    let filter: TenantFilter?

    /// Nil where the flag is not there.
    init?(_ arguments: Arguments) throws(CommandError) {
        guard let value = arguments.value("where") else { return nil }
        if value == "all" {
            filter = nil
            return
        }
        var filter = TenantFilter()
        var settings = Arguments()
        var names: Set<String> = []
        for condition in Self.conditions(value) {
            guard let equals = condition.firstIndex(of: "="), equals != condition.startIndex else {
                throw .usage("--where: \"\(condition)\" is no condition", hint: Self.example)
            }
            let name = String(condition[..<equals])
            let wanted = String(condition[condition.index(after: equals)...])
            // The tenant has to fulfil all conditions, and a filter has room for one of each name.
            guard names.insert(name).inserted else {
                throw .usage("--where: \(name) is given twice", hint: Self.example)
            }
            switch name {
            case "id" where wanted.isEmpty, "name" where wanted.isEmpty:
                throw .emptyCondition("--where: \(name)=")
            case "id": filter.tenantIDPrefix = Text(wanted)
            case "name": filter.displayNamePart = Text(wanted)
            default:
                guard TenantSettings.flags.contains(where: { $0.name == name }), !name.hasPrefix("guidance-") else {
                    let names = ["id", "name"] + TenantSettings.flags.map(\.name)
                    throw .usage(
                        "--where: there is no setting \(name)",
                        hint: nearest(to: name, in: names).map { "did you mean \($0)?" } ?? Self.example)
                }
                settings.values[name] = wanted
            }
        }
        let wanted = try TenantSettings(settings)
        if !wanted.paths.isEmpty {
            filter.settings = wanted.tenant
            filter.settingsMask = ProtobufFieldMask(paths: wanted.paths)
        }
        self.filter = filter
    }

    /// The tenants that the flag selects, for messages. Nil where the flag is not there.
    static func title(_ arguments: Arguments) -> String? {
        arguments.value("where").map { $0 == "all" ? "EVERY tenant" : "every tenant where \($0)" }
    }

    private static let example = "for example --where 'id=shop- and enable-anonymous-user=true'"

    private static func conditions(_ value: String) -> [Substring] {
        var conditions: [Substring] = []
        var rest = value[...]
        while let place = rest.firstRange(of: " and ") {
            conditions.append(rest[..<place.lowerBound])
            rest = rest[place.upperBound...]
        }
        return conditions + [rest]
    }
}
