import Base
import CMessages
import Glibc

/// Decodes a message for the generated `init(decoding:limits:)`.
func decodeMessage<Value: ConvertibleToC>(
    _ bytes: UnsafeRawBufferPointer, limits: MessageLimits
) throws(DecodeError) -> Value {
    if bytes.isEmpty { return Value() }
    return Value.isFlat
        ? try decodeFlat(bytes, limits: limits) : try decodeByProtobufC(bytes, limits: limits)
}

/// Decodes a flat message in the pre-scan. Most requests are flat and short, and the pre-scan visits each value anyway,
/// so that nothing is left for protobuf-c.
func decodeFlat<Value: ConvertibleToC>(
    _ bytes: UnsafeRawBufferPointer, limits: MessageLimits
) throws(DecodeError) -> Value {
    try withUnsafeTemporaryAllocation(
        byteCount: MemoryLayout<Value.CValue>.size, alignment: MemoryLayout<Value.CValue>.alignment
    ) { memory throws(DecodeError) -> Value in
        guard let target = memory.baseAddress else { throw .malformed }
        memset(target, 0, memory.count)
        try PreScan.read(bytes, of: Value.schema, limits: limits, into: target)
        return Value(copying: UnsafePointer(target.bindMemory(to: Value.CValue.self, capacity: 1)))
    }
}

/// Pre-scan, unpack into the thread's arena, copy, reset.
func decodeByProtobufC<Value: ConvertibleToC>(
    _ bytes: UnsafeRawBufferPointer, limits: MessageLimits
) throws(DecodeError) -> Value {
    guard let start = bytes.baseAddress else { return Value() }
    let schema = Value.schema
    try PreScan.check(bytes, against: schema, limits: limits)

    let arena = Arena.ofThisThread
    arena.begin(
        budget: min(limits.arenaBudgetMax, max(limits.arenaBudgetFloor, limits.arenaBudgetFactor * bytes.count)))
    defer { arena.reset(wiping: Value.holdsSecret) }
    var allocator = ProtobufCAllocator(arena)
    let unpacked = protobuf_c_message_unpack(
        schema.pointee.descriptor, &allocator, bytes.count, start.assumingMemoryBound(to: UInt8.self))
    guard let unpacked else { throw arena.isSpent ? .budget : .malformed }
    return Value(copying: UnsafeRawPointer(unpacked).assumingMemoryBound(to: Value.CValue.self))
}

/// Builds the C struct in the thread's arena and packs it straight into the buffer.
func encodeMessage<Value: ConvertibleToC>(_ value: Value, into buffer: inout ByteBuffer) {
    let arena = Arena.ofThisThread
    arena.begin(budget: .max)
    defer { arena.reset(wiping: Value.holdsSecret) }
    let message = UnsafeMutableRawPointer(arena.make(value)).assumingMemoryBound(to: ProtobufCMessage.self)
    let byteCount = protobuf_c_message_get_packed_size(message)
    let target = buffer.reserve(byteCount).assumingMemoryBound(to: UInt8.self)
    buffer.commit(protobuf_c_message_pack(message, target))
}

/// The number of bytes `encodeMessage` would append.
func measureMessage<Value: ConvertibleToC>(_ value: Value) -> Int {
    let arena = Arena.ofThisThread
    arena.begin(budget: .max)
    defer { arena.reset(wiping: Value.holdsSecret) }
    let message = UnsafeMutableRawPointer(arena.make(value)).assumingMemoryBound(to: ProtobufCMessage.self)
    return protobuf_c_message_get_packed_size(message)
}

/// Measures what the limits of a peer's decoder will count in a message: the peer does the same with the same bytes.
///
/// The bytes stay in the arena, which wipes them if the message has a secret.
func measureDecoding<Value: ConvertibleToC>(of value: Value) -> DecodingCost {
    let arena = Arena.ofThisThread
    arena.begin(budget: .max)
    defer { arena.reset(wiping: Value.holdsSecret) }
    let message = UnsafeMutableRawPointer(arena.make(value)).assumingMemoryBound(to: ProtobufCMessage.self)
    let byteCount = protobuf_c_message_get_packed_size(message)
    // Proof: an arena without a budget refuses only when the system has no memory left.
    guard let start = arena.allocate(byteCount) else { preconditionFailure("no memory for a message") }
    let bytes = start.assumingMemoryBound(to: UInt8.self)
    protobuf_c_message_pack(message, bytes)
    let budget = arena.budgetLeft
    var allocator = ProtobufCAllocator(arena)
    _ = protobuf_c_message_unpack(Value.schema.pointee.descriptor, &allocator, byteCount, bytes)
    return DecodingCost(
        byteCount: byteCount,
        fieldCount: PreScan.fieldCount(UnsafeRawBufferPointer(start: start, count: byteCount), of: Value.schema),
        memoryByteCount: budget - arena.budgetLeft)
}
