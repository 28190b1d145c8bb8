import Base
import JSON

/// `--fields`: the parts of a record that are shown.
extension Output {
    /// The error in --fields, which is known once something was printed.
    var fieldProblem: CommandError? { unknownFields.problem }

    /// Refuses --fields before anything is sent, if one of them is none of this record, or if they leave `needed` out.
    /// `needed`: the field of a secret that cannot be read again. With -q the fields do not matter.
    func checkFields(_ record: some Record, needing needed: String? = nil) throws(CommandError) {
        guard let fields, !isQuiet, format != .name else { return }
        let json = record.json
        for path in paths(in: [json]) ?? [] where Self.find(path, in: json) == nil {
            throw .usage("--fields: there is no field \(path)", hint: Self.hint(path, known: Self.leaves(of: [json])))
        }
        if let needed, !fields.contains(needed) {
            throw .usage(
                "--fields leaves out \(needed), which cannot be read again", hint: "add it, or use --key-out FILE")
        }
    }

    func shown(_ record: some Record) -> JSONValue {
        let json = record.json
        return shown(json, paths(in: [json]))
    }

    func shown<Element: Record>(_ records: [Element]) -> [JSONValue] {
        let values = records.map(\.json)
        let paths = paths(in: values)
        return values.map { shown($0, paths) }
    }

    /// The record's JSON, or the values at these paths, in that order. The answer of a change is shown as a whole if a
    /// path is wrong: it may hold a secret that nobody can ask for again.
    private func shown(_ json: JSONValue, _ paths: [String]?) -> JSONValue {
        guard let paths else { return json }
        let chosen = JSONValue.object(paths.map { path in .init(Text(path), value(of: json, at: path)) })
        return isOfChange && unknownFields.problem != nil ? json : chosen
    }

    /// The paths in --fields, as these records have them: the `created_at` of a table is their `created_at_micros`.
    private func paths(in values: [JSONValue]) -> [String]? {
        fields?.map { path in
            let exact = path + "_micros"
            let isShort = values.contains { Self.find(path, in: $0) == nil && Self.find(exact, in: $0) != nil }
            return isShort ? exact : path
        }
    }

    /// The paths of the columns. With `wide`, the paths of all other fields follow the usual ones.
    func columns(of values: [JSONValue], usual: [String]) -> [String] {
        if let chosen = paths(in: values) {
            for json in values.prefix(1) { for path in chosen { _ = value(of: json, at: path) } }
            return chosen
        }
        guard format == .wide else { return usual }
        return usual + Self.leaves(of: values).filter { !usual.contains($0) }
    }

    private func value(of json: JSONValue, at path: String) -> JSONValue {
        guard let value = Self.find(path, in: json) else {
            unknownFields.note(path, known: Self.leaves(of: [json]))
            return .null
        }
        return value
    }

    /// Nil: there is no such member. Null: an object on the path is absent.
    static func find(_ path: String, in json: JSONValue) -> JSONValue? {
        var value = json
        for name in path.split(separator: ".") {
            if value.isNull { return .null }
            guard let next = value[Text(String(name))] else { return nil }
            value = next
        }
        return value
    }

    /// The paths of all values that are not objects, in the order in which the records have them.
    static func leaves(of values: [JSONValue]) -> [String] {
        var (paths, seen): ([String], Set<String>) = ([], [])
        func add(_ json: JSONValue, _ prefix: String) {
            for member in json.object ?? [] {
                let path = prefix.isEmpty ? member.name.string : "\(prefix).\(member.name)"
                if member.value.object?.isEmpty == false, !path.hasSuffix("_json") {
                    add(member.value, path)
                } else if seen.insert(path).inserted {
                    paths.append(path)
                }
            }
        }
        for json in values { add(json, "") }
        return paths
    }

    /// Advice on a field that there is not.
    static func hint(_ path: String, known: [String]) -> String {
        nearest(to: path, in: known).map { "did you mean \($0)?" } ?? "fields: \(known.joined(separator: ", "))"
    }
}
