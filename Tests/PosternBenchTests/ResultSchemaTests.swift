import Base
import JSON
import Testing

@testable import PosternBench

/// docs/bench-result.schema.json against what is written, as far as the schema uses JSON Schema.
@Suite struct ResultSchemaTests {
    private let schema: JSONValue

    init() throws {
        let path = String(#filePath.prefix { _ in true }).replacing(
            "Tests/PosternBenchTests/ResultSchemaTests.swift", with: "docs/bench-result.schema.json")
        schema = try JSONValue(parsing: TextFile.read(path))
    }

    private func faults(_ value: JSONValue, _ rule: JSONValue, _ place: String) -> [String] {
        if let name = rule["$ref"]?.string?.split(separator: "/").last {
            guard let referred = schema["$defs"]?[Text(String(name))] else { return ["\(place): no \(name)"] }
            return faults(value, referred, place)
        }
        let types = rule["type"]?.array?.compactMap(\.string) ?? [rule["type"]?.string ?? "any"]
        guard types.contains(where: { Self.is($0, value) }) else { return ["\(place): is no \(types)"] }
        var found: [String] = []
        for item in value.array ?? [] { found += faults(item, rule["items"] ?? [:], "\(place)[]") }
        guard case .object(let members) = value else { return found }
        for name in rule["required"]?.array ?? [] where value[name.text ?? ""] == nil {
            found.append("\(place): lacks \(name)")
        }
        for member in members {
            let inside = "\(place).\(member.name)"
            if let rule = rule["properties"]?[member.name] {
                found += faults(member.value, rule, inside)
            } else if let others = rule["additionalProperties"] {
                found += others == false ? ["\(inside): is not in the schema"] : faults(member.value, others, inside)
            }
        }
        return found
    }

    private static func `is`(_ type: String, _ value: JSONValue) -> Bool {
        switch type {
        case "any": true
        case "object": value.object != nil
        case "array": value.array != nil
        case "string": value.text != nil
        case "integer": value.integer != nil
        case "number": value.double != nil
        case "boolean": value.bool != nil
        case "null": value.isNull
        default: false
        }
    }

    @Test func `A result is as its schema says, of an open and of a closed loop`() throws {
        var result = exampleResult()
        result.ownLag.record(5)
        result.notSent = ["SKIPPED": 2]
        result.journeysBegun = 3
        #expect(faults(result.json, schema, "result") == [])
        result.isOpenLoop = false
        result.target = nil
        result.server = nil
        result.series[0].target = nil
        result.series[0].serverCPUShare = nil
        result.failure = "gone"
        #expect(faults(result.json, schema, "result") == [])
    }

    @Test func `The schema is looked at in earnest`() throws {
        guard case .object(var members) = exampleResult().json else { return }
        members.append(.init("unknown", 1))
        #expect(faults(.object(members), schema, "result") == ["result.unknown: is not in the schema"])
        members.removeAll { $0.name == "unknown" || $0.name == "seconds" }
        #expect(faults(.object(members), schema, "result").count == 1)
    }
}
