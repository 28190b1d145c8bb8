public import Base
import CMessages

/// A .proto file of the protocol as a descriptor: what reflection and tools like grpcurl need to speak it.
///
/// Published are postern.v1, health, reflection, the error details and what they import; not the stored records.
public struct PublishedFile: Sendable {
    /// Its path as other files import it, for example "postern/v1/users.proto".
    public let name: Text
    public let dependencies: [Text]
    /// Full names of the file's messages, enums, services, methods and extensions.
    public let symbols: [Text]
    /// Full names of its services.
    public let services: [Text]
    /// A serialized google.protobuf.FileDescriptorProto.
    public let descriptor: [UInt8]

    /// Imports come before the files that import them. Made on first use.
    public static let all: [PublishedFile] = {
        var byteCount = 0
        let start = postern_descriptor_set(&byteCount)
        let files = contents(of: UnsafeRawBufferPointer(start: start, count: byteCount), FileDescriptorSetFields.file)
        return files.map { PublishedFile($0) }
    }()

    private init(_ file: UnsafeRawBufferPointer) {
        let package = PublishedFile.texts(file, FileDescriptorProtoFields.package).first ?? .empty
        let services = PublishedFile.contents(of: file, FileDescriptorProtoFields.service)
        let messages = PublishedFile.contents(of: file, FileDescriptorProtoFields.messageType)
        let others = [FileDescriptorProtoFields.enumType, FileDescriptorProtoFields.extension].flatMap {
            PublishedFile.contents(of: file, $0)
        }
        name = PublishedFile.texts(file, FileDescriptorProtoFields.name).first ?? .empty
        dependencies = PublishedFile.texts(file, FileDescriptorProtoFields.dependency)
        self.services = services.map { PublishedFile.name(of: $0, in: package) }
        symbols =
            messages.flatMap { PublishedFile.symbols(ofMessage: $0, in: package) }
            + (others + services).map { PublishedFile.name(of: $0, in: package) }
            + services.flatMap { PublishedFile.symbols(ofMethodsOf: $0, in: package) }
        descriptor = [UInt8](file)
    }

    private static func symbols(ofMessage message: UnsafeRawBufferPointer, in scope: Text) -> [Text] {
        let own = name(of: message, in: scope)
        return [own]
            + contents(of: message, DescriptorProtoFields.nestedType).flatMap { symbols(ofMessage: $0, in: own) }
            + contents(of: message, DescriptorProtoFields.enumType).map { name(of: $0, in: own) }
    }

    private static func symbols(ofMethodsOf service: UnsafeRawBufferPointer, in package: Text) -> [Text] {
        let own = name(of: service, in: package)
        return contents(of: service, ServiceDescriptorProtoFields.method).map { name(of: $0, in: own) }
    }

    private static func name(of declaration: UnsafeRawBufferPointer, in scope: Text) -> Text {
        let own = texts(declaration, DescriptorProtoFields.name).first ?? .empty
        return Text(unchecked: scope.bytes + [UInt8(ascii: ".")] + own.bytes)
    }

    private static func texts(_ message: UnsafeRawBufferPointer, _ number: Int) -> [Text] {
        contents(of: message, number).map { Text(unchecked: [UInt8]($0)) }
    }

    private static func contents(of message: UnsafeRawBufferPointer, _ number: Int) -> [UnsafeRawBufferPointer] {
        var found: [UnsafeRawBufferPointer] = []
        var reader = FieldReader(message)
        do throws(DecodeError) {
            while let field = try reader.next() {
                if field.number == number, case .bytes(let content) = field.value { found.append(content) }
            }
        } catch {
            preconditionFailure("the embedded descriptor set is \(error)")
        }
        return found
    }
}
