// The protocol, as the copy of its descriptors in this program describes it.

import Base
import Messages

/// Every message, enum and method by its name, for `postern rpc`, which lists, describes, reads and writes them.
struct ProtocolSchema: Sendable {
    struct Field: Sendable {
        let name: Text
        let number: Int
        let kind: Kind
        let isRepeated: Bool
        /// Fields with the same number exclude each other; nil for all others.
        let oneofIndex: Int?
    }

    /// The form of a field's value on the wire.
    enum Kind: Sendable, Equatable {
        case double, float
        /// int64, int32, uint64, uint32: a varint.
        case integer(isSigned: Bool)
        case zigzag
        case fixed64(isSigned: Bool)
        case fixed32(isSigned: Bool)
        case bool
        case string
        case bytes
        case message(Text)
        case enumeration(Text)
    }

    struct MessageType: Sendable {
        let name: Text
        let fields: [Field]
    }

    struct EnumType: Sendable {
        let name: Text
        let values: [(name: Text, number: Int64)]
    }

    struct Method: Sendable {
        /// "postern.v1.Users"
        let service: Text
        let name: Text
        let request: Text
        let response: Text
        let isClientStreaming: Bool
        let isServerStreaming: Bool
        /// Why the method has no command: its option `stub_only`, or empty.
        let stubOnly: Text

        /// "postern.v1.Users/Get"
        var fullName: String { "\(service)/\(name)" }
    }

    private(set) var messages: [Text: MessageType] = [:]
    private(set) var enums: [Text: EnumType] = [:]
    private(set) var methods: [Method] = []

    static let shared = ProtocolSchema()

    private init() {
        for file in PublishedFile.all {
            let descriptor = DescriptorFields(file.descriptor)
            let package = descriptor.text(FileDescriptorProtoNumber.package)
            add(descriptor.messages(FileDescriptorProtoNumber.messageType), in: package)
            addEnums(descriptor.messages(FileDescriptorProtoNumber.enumType), in: package)
            for service in descriptor.messages(FileDescriptorProtoNumber.service) {
                let name = Self.joined(package, service.text(ServiceDescriptorProtoNumber.name))
                methods += service.messages(ServiceDescriptorProtoNumber.method).map { Method($0, of: name) }
            }
        }
    }

    private mutating func add(_ declarations: [DescriptorFields], in scope: Text) {
        for declaration in declarations {
            let name = Self.joined(scope, declaration.text(DescriptorProtoNumber.name))
            let fields = declaration.messages(DescriptorProtoNumber.field).map(Field.init)
            messages[name] = MessageType(name: name, fields: fields)
            add(declaration.messages(DescriptorProtoNumber.nestedType), in: name)
            addEnums(declaration.messages(DescriptorProtoNumber.enumType), in: name)
        }
    }

    private mutating func addEnums(_ declarations: [DescriptorFields], in scope: Text) {
        for declaration in declarations {
            let name = Self.joined(scope, declaration.text(EnumDescriptorProtoNumber.name))
            let values = declaration.messages(EnumDescriptorProtoNumber.value).map {
                ($0.text(EnumValueDescriptorProtoNumber.name), $0.integer(EnumValueDescriptorProtoNumber.number))
            }
            enums[name] = EnumType(name: name, values: values)
        }
    }

    private static func joined(_ scope: Text, _ name: Text) -> Text {
        Text(unchecked: scope.bytes + [UInt8(ascii: ".")] + name.bytes)
    }

    /// `Users/Get`, `Users.Get` or with the package before it.
    func method(_ name: String) throws(CommandError) -> Method {
        let wanted = Self.normalized(name)
        if let method = methods.first(where: { Self.normalized($0.fullName) == wanted }) { return method }
        let short = methods.filter { Self.normalized($0.fullName).hasSuffix("." + wanted) }
        if short.count == 1 { return short[0] }
        let names = methods.map(\.fullName)
        let near = nearest(to: name, in: names) ?? nearest(to: "postern.v1.\(name)", in: names)
        throw CommandError(
            "there is no method \(name)", hint: near.map { "did you mean \($0)?" } ?? "postern rpc list",
            exitCode: .notFound)
    }

    private static func normalized(_ name: String) -> String { String(name.map { $0 == "/" ? "." : $0 }) }
}

extension ProtocolSchema.Method {
    fileprivate init(_ declaration: DescriptorFields, of service: Text) {
        self.service = service
        name = declaration.text(MethodDescriptorProtoNumber.name)
        request = declaration.typeName(MethodDescriptorProtoNumber.inputType)
        response = declaration.typeName(MethodDescriptorProtoNumber.outputType)
        isClientStreaming = declaration.integer(MethodDescriptorProtoNumber.clientStreaming) != 0
        isServerStreaming = declaration.integer(MethodDescriptorProtoNumber.serverStreaming) != 0
        let options = declaration.messages(MethodDescriptorProtoNumber.options).first
        stubOnly = options?.text(MethodOptionsNumber.stubOnly) ?? .empty
    }
}

extension ProtocolSchema.Field {
    /// FieldDescriptorProto.Label.LABEL_REPEATED
    private static let repeated: Int64 = 3

    fileprivate init(_ declaration: DescriptorFields) {
        name = declaration.text(FieldDescriptorProtoNumber.name)
        number = Int(clamping: declaration.integer(FieldDescriptorProtoNumber.number))
        isRepeated = declaration.integer(FieldDescriptorProtoNumber.label) == Self.repeated
        oneofIndex = declaration.optionalInteger(FieldDescriptorProtoNumber.oneofIndex).map { Int(clamping: $0) }
        let type = declaration.typeName(FieldDescriptorProtoNumber.typeName)
        kind = Self.kind(declaration.integer(FieldDescriptorProtoNumber.type), type)
    }

    /// FieldDescriptorProto.Type
    private static func kind(_ type: Int64, _ typeName: Text) -> ProtocolSchema.Kind {
        switch type {
        case 1: .double
        case 2: .float
        case 3, 5: .integer(isSigned: true)
        case 4, 13: .integer(isSigned: false)
        case 6: .fixed64(isSigned: false)
        case 7: .fixed32(isSigned: false)
        case 8: .bool
        case 9: .string
        case 11: .message(typeName)
        case 14: .enumeration(typeName)
        case 15: .fixed32(isSigned: true)
        case 16: .fixed64(isSigned: true)
        case 17, 18: .zigzag
        default: .bytes
        }
    }
}

/// The fields of a descriptor, which is part of this program.
private struct DescriptorFields {
    private var contents: [(number: Int, bytes: [UInt8])] = []
    private var numbers: [(number: Int, value: Int64)] = []

    init(_ descriptor: [UInt8]) {
        descriptor.withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            while let field = try? reader.next() {
                switch field.value {
                case .bytes(let content): contents.append((field.number, [UInt8](content)))
                case .varint(let value): numbers.append((field.number, Int64(bitPattern: value)))
                case .fixed32, .fixed64: break
                }
            }
        }
    }

    func messages(_ number: Int) -> [DescriptorFields] {
        contents.filter { $0.number == number }.map { DescriptorFields($0.bytes) }
    }

    func text(_ number: Int) -> Text {
        contents.first { $0.number == number }.map { Text(unchecked: $0.bytes) } ?? .empty
    }

    /// Names of types begin with a dot.
    func typeName(_ number: Int) -> Text { Text(unchecked: Array(text(number).bytes.dropFirst())) }

    func optionalInteger(_ number: Int) -> Int64? { numbers.first { $0.number == number }?.value }

    func integer(_ number: Int) -> Int64 { optionalInteger(number) ?? 0 }
}
