import Base
import CMessages

/// A Swift message that can be copied from and to protobuf-c's struct; the conformances are generated.
protocol ConvertibleToC: Message {
    associatedtype CValue

    static var schema: UnsafePointer<PosternSchema> { get }

    /// `source` passed the pre-scan and was unpacked by protobuf-c.
    init(copying source: UnsafePointer<CValue>)

    /// `target` is initialised; what it points to is put into the arena.
    func copy(to target: UnsafeMutablePointer<CValue>, arena: Arena)
}

extension ConvertibleToC {
    /// The message, or one inside it, has a secret field, so that its bytes in the arena are wiped.
    static var holdsSecret: Bool { schema.pointee.holds_secret != 0 }

    /// The message holds nothing but singular numbers, texts and bytes.
    static var isFlat: Bool { schema.pointee.is_flat != 0 }
}

// Swift to C. An arena without a budget refuses only when the system has no memory left, which is fatal.

extension Arena {
    func make<Value: ConvertibleToC>(_ value: Value) -> UnsafeMutablePointer<Value.CValue> {
        let target = take(Value.CValue.self, count: 1)
        UnsafeMutableRawPointer(target).withMemoryRebound(to: ProtobufCMessage.self, capacity: 1) {
            protobuf_c_message_init(Value.schema.pointee.descriptor, $0)
        }
        value.copy(to: target, arena: self)
        return target
    }

    func copy(_ text: Text) -> ProtobufCBinaryData { copy(text.bytes) }

    func copy(_ bytes: [UInt8]) -> ProtobufCBinaryData {
        bytes.withUnsafeBytes { copy($0) }
    }

    func copy(_ secret: Secret) -> ProtobufCBinaryData {
        secret.withBytes { copy($0) }
    }

    func copyEach<Element, CElement>(
        _ elements: [Element], _ convert: (Element) -> CElement
    ) -> UnsafeMutablePointer<CElement>? {
        guard !elements.isEmpty else { return nil }
        let start = take(CElement.self, count: elements.count)
        for index in 0..<elements.count { (start + index).initialize(to: convert(elements[index])) }
        return start
    }

    private func copy(_ bytes: UnsafeRawBufferPointer) -> ProtobufCBinaryData {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return ProtobufCBinaryData(len: 0, data: nil) }
        let target = take(UInt8.self, count: bytes.count)
        UnsafeMutableRawPointer(target).copyMemory(from: source, byteCount: bytes.count)
        return ProtobufCBinaryData(len: bytes.count, data: target)
    }

    private func take<Element>(_ type: Element.Type, count: Int) -> UnsafeMutablePointer<Element> {
        guard let start = allocate(count * MemoryLayout<Element>.stride) else {
            preconditionFailure("no memory for a message")
        }
        return start.bindMemory(to: Element.self, capacity: count)
    }
}

// C to Swift, after the pre-scan.

extension Text {
    init(copying data: ProtobufCBinaryData) {
        self.init(unchecked: [UInt8](copying: data))
    }
}

extension Secret {
    convenience init(copying data: ProtobufCBinaryData) {
        self.init(copying: UnsafeRawBufferPointer(start: data.data, count: data.len))
    }
}

extension [UInt8] {
    init(copying data: ProtobufCBinaryData) {
        self.init(UnsafeRawBufferPointer(start: data.data, count: data.len))
    }
}

func elements<CElement, Element>(
    _ count: Int, _ start: UnsafeMutablePointer<CElement>?, _ convert: (CElement) -> Element
) -> [Element] {
    guard let start else { return [] }
    return (0..<count).map { convert(start[$0]) }
}

func copiedMessages<Value: ConvertibleToC>(
    _ count: Int, _ start: UnsafeMutablePointer<UnsafeMutablePointer<Value.CValue>?>?
) -> [Value] {
    guard let start else { return [] }
    return (0..<count).map { index in
        guard let source = start[index] else { preconditionFailure("protobuf-c left a repeated message out") }
        return Value(copying: source)
    }
}

func enumeration<Value: RawRepresentable<Int32>>(_ rawValue: UInt32) -> Value {
    guard let value = Value(rawValue: Int32(bitPattern: rawValue)) else {
        preconditionFailure("the pre-scan let the enum value \(rawValue) through")
    }
    return value
}
