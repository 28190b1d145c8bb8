public import Base
import Messages

/// A method as the published descriptors have it, for tests over all methods that have something in common.
public struct PublishedMethod: Sendable {
    public struct Field: Sendable {
        public let name: Text
        public let number: Int
        /// google.protobuf.FieldDescriptorProto.Type: 8 bool, 9 string, 11 message, …
        public let type: Int
        /// The message's or enum's name, with a dot before the package; empty for others.
        public let typeName: Text
        public let isRepeated: Bool
    }

    /// For example `postern.v1.Users/Get`.
    public let fullName: String
    public let requestFields: [Field]
    public let responseFields: [Field]
    public let isRequestStreaming: Bool
    public let isResponseStreaming: Bool
    /// postern.v1.Role as a number; 0: the method needs no credential.
    public let role: Int
    /// Why the method's stub is enough, or empty.
    public let stubOnly: Text
    /// Whether clients may repeat the method by themselves.
    public let isIdempotent: Bool
    public let isMutation: Bool
    /// Whether the method works when the quotas are spent.
    public let isAllowedBeyondQuota: Bool
    /// Why the mutation keeps no record of its idempotency-key, or empty.
    public let noIdempotencyKey: Text

    public static let all: [PublishedMethod] = {
        let files = PublishedFile.all
        let messages = files.flatMap { file in
            fields(4, of: file.descriptor).map { message in
                (".\(package(of: file)).\(text(1, of: message))", fields(2, of: message).map(Field.init))
            }
        }
        let fieldsByMessage = Dictionary(uniqueKeysWithValues: messages)
        return files.flatMap { file in
            fields(6, of: file.descriptor).flatMap { service in
                fields(2, of: service).map { method in
                    PublishedMethod(
                        method, service: "\(package(of: file)).\(text(1, of: service))", fieldsByMessage)
                }
            }
        }
    }()

    public func field(named name: Text) -> Field? { requestFields.first { $0.name == name } }

    // Field numbers are those of google/protobuf/descriptor.proto; 50001 is `rule` in postern/v1/options.proto, 50002
    // `stub_only`, 50004 `no_idempotency_key`.
    private init(_ method: [UInt8], service: String, _ fieldsByMessage: [String: [Field]]) {
        fullName = "\(service)/\(Self.text(1, of: method))"
        requestFields = fieldsByMessage["\(Self.text(2, of: method))"] ?? []
        responseFields = fieldsByMessage["\(Self.text(3, of: method))"] ?? []
        isRequestStreaming = Self.number(5, of: method) != 0
        isResponseStreaming = Self.number(6, of: method) != 0
        let options = Self.fields(4, of: method).first ?? []
        let rule = Self.fields(50001, of: options).first ?? []
        role = Self.number(1, of: rule)
        isIdempotent = Self.number(4, of: rule) != 0
        isMutation = Self.number(5, of: rule) != 0
        isAllowedBeyondQuota = Self.number(7, of: rule) != 0
        stubOnly = Self.text(50002, of: options)
        noIdempotencyKey = Self.text(50004, of: options)
    }

    private static func package(of file: PublishedFile) -> Text { text(2, of: file.descriptor) }

    fileprivate static func text(_ number: Int, of message: [UInt8]) -> Text {
        Text(unchecked: fields(number, of: message).first ?? [])
    }

    fileprivate static func number(_ number: Int, of message: [UInt8]) -> Int {
        message.withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            var found = 0
            while let field = try? reader.next() {
                if field.number == number, case .varint(let value) = field.value { found = Int(value) }
            }
            return found
        }
    }

    fileprivate static func fields(_ number: Int, of message: [UInt8]) -> [[UInt8]] {
        message.withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            var found: [[UInt8]] = []
            while let field = try? reader.next() {
                if field.number == number, case .bytes(let content) = field.value { found.append([UInt8](content)) }
            }
            return found
        }
    }
}

extension PublishedMethod.Field {
    fileprivate init(_ field: [UInt8]) {
        name = PublishedMethod.text(1, of: field)
        number = PublishedMethod.number(3, of: field)
        type = PublishedMethod.number(5, of: field)
        typeName = PublishedMethod.text(6, of: field)
        isRepeated = PublishedMethod.number(4, of: field) == 3
    }
}
