import Testing

@testable import Wire

@Suite struct StreamTableTests {
    private struct Record: StreamRecord { let id: UInt32 }

    @Test func `Streams are found in any order of finishing`() {
        var generator = SeededGenerator()
        print("StreamTableTests seed: \(generator.seed)")
        for count in 0...40 as ClosedRange<UInt32> {
            var table = StreamTable<Record>()
            let ids = (0..<count).map { $0 * 2 + 1 }
            for id in ids { table.append(Record(id: id)) }
            #expect(table.index(of: 0) == nil)
            #expect(table.index(of: .max) == nil)
            var left = Set(ids)
            for id in ids.shuffled(using: &generator) {
                for other in ids { #expect((table.index(of: other) != nil) == left.contains(other)) }
                if let index = table.index(of: id) { #expect(table.remove(at: index).id == id) }
                left.remove(id)
                #expect(table.count == left.count)
            }
            #expect(table.isEmpty)
        }
    }

    @Test func `What lies above an id is taken out`() {
        var table = StreamTable<Record>()
        for id in [1, 5, 9] as [UInt32] { table.append(Record(id: id)) }
        #expect(table.removeAll(above: 9) == [])
        #expect(table.removeAll(above: 4) == [5, 9])
        #expect(table.removeAll(above: 0) == [1])
        #expect(table.removeAll(above: 0) == [])
    }
}
