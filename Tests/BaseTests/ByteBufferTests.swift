import Base
import TestSupport
import Testing

@Suite struct ByteBufferTests {
    @Test func whatIsAppendedCanBeRead() {
        var buffer = ByteBuffer()
        #expect(buffer.isEmpty && buffer.capacity == 0)
        buffer.append(1)
        buffer.append(contentsOf: [2, 3])
        buffer.append(bigEndian: 0x0405_0607)
        #expect(buffer.copyBytes() == [1, 2, 3, 4, 5, 6, 7])
        #expect(buffer.readableByteCount == 7)
        buffer.append(contentsOf: UnsafeRawBufferPointer(start: nil, count: 0))
        buffer.append(contentsOf: [])
        #expect(buffer.readableByteCount == 7)
    }

    @Test func reservedBytesCountOnceCommitted() {
        var buffer = ByteBuffer(capacity: 4)
        let room = buffer.reserve(1_000)
        #expect(buffer.capacity >= 1_000 && buffer.isEmpty)
        room.storeBytes(of: 7, as: UInt8.self)
        buffer.commit(1)
        #expect(buffer.copyBytes() == [7])
        _ = buffer.reserve(0)
        buffer.commit(0)
        #expect(buffer.copyBytes() == [7])
    }

    @Test func aLengthCanBeFilledInLater() {
        var buffer = ByteBuffer()
        buffer.append(contentsOf: [9, 9])
        buffer.consume(1)
        buffer.append(bigEndian: 0)
        buffer.append(8)
        buffer.overwrite(bigEndian: 0x0102_0304, at: 1)
        #expect(buffer.copyBytes() == [9, 1, 2, 3, 4, 8])
    }

    @Test func memoryIsGivenBackOnlyWhenEmptyAndLarge() {
        var buffer = ByteBuffer()
        buffer.append(contentsOf: [UInt8](repeating: 1, count: 5_000))
        buffer.releaseIfIdle()
        #expect(buffer.readableByteCount == 5_000)
        buffer.consume(5_000)
        buffer.releaseIfIdle(above: 100_000)
        #expect(buffer.capacity >= 5_000)
        buffer.releaseIfIdle(above: 4_096)
        #expect(buffer.capacity == 0)
        buffer.append(3)
        #expect(buffer.copyBytes() == [3])
    }

    @Test func `A few bytes keep no memory of the many before them`() {
        var buffer = ByteBuffer()
        buffer.append(contentsOf: [UInt8](repeating: 1, count: 100_000) + [2, 3])
        buffer.consume(50_000)
        buffer.releaseSpare(above: 4_096)
        // More than a quarter is in use.
        #expect(buffer.capacity >= 100_000)
        buffer.consume(50_000)
        buffer.releaseSpare(above: 200_000)
        #expect(buffer.capacity >= 100_000)
        buffer.releaseSpare(above: 4_096)
        #expect(buffer.capacity == 2 && buffer.copyBytes() == [2, 3])
        buffer.append(4)
        #expect(buffer.copyBytes() == [2, 3, 4])
    }

    @Test func aSteadyStreamThroughTheBufferTakesNoMoreMemory() {
        var buffer = ByteBuffer()
        buffer.append(contentsOf: [UInt8](repeating: 0, count: 100))
        for round in 0..<10_000 {
            buffer.append(contentsOf: [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 100))
            buffer.consume(100)
        }
        #expect(buffer.capacity <= 512)
        #expect(buffer.copyBytes() == [UInt8](repeating: UInt8(truncatingIfNeeded: 9_999), count: 100))
    }

    @Test func anySequenceOfOperationsLeavesTheBytesOfAPlainArray() {
        var random = SeededRandom.printed()
        for _ in 0..<200 {
            var buffer = ByteBuffer(capacity: random.below(40))
            var model: [UInt8] = []
            for _ in 0..<100 {
                switch random.below(9) {
                case 0:
                    let byte = UInt8(truncatingIfNeeded: random.next())
                    buffer.append(byte)
                    model.append(byte)
                case 1:
                    let bytes = random.bytes(random.below(400))
                    buffer.append(contentsOf: bytes)
                    model += bytes
                case 2:
                    let value = UInt32(truncatingIfNeeded: random.next())
                    buffer.append(bigEndian: value)
                    model += withUnsafeBytes(of: value.bigEndian) { [UInt8]($0) }
                case 3 where model.count >= 4:
                    let value = UInt32(truncatingIfNeeded: random.next())
                    let offset = random.below(model.count - 3)
                    buffer.overwrite(bigEndian: value, at: offset)
                    model.replaceSubrange(
                        offset..<offset + 4, with: withUnsafeBytes(of: value.bigEndian) { [UInt8]($0) })
                case 4:
                    let count = random.below(model.count + 1)
                    buffer.truncate(to: count)
                    model.removeLast(model.count - count)
                case 5:
                    let bytes = random.bytes(random.below(30))
                    buffer.reserve(bytes.count + random.below(50)).copyMemory(from: bytes, byteCount: bytes.count)
                    buffer.commit(bytes.count)
                    model += bytes
                case 6: random.below(2) == 0 ? buffer.releaseIfIdle(above: 99) : buffer.releaseSpare(above: 99)
                default:
                    let count = random.below(model.count + 1)
                    buffer.consume(count)
                    model.removeFirst(count)
                }
                let isRight =
                    buffer.copyBytes() == model && buffer.readableByteCount == model.count
                    && buffer.isEmpty == model.isEmpty && buffer.capacity >= model.count
                guard isRight else {
                    Issue.record("the buffer and the array differ")
                    return
                }
            }
        }
    }
}
