/// A first-in, first-out queue. Its length is bounded by the code that fills it.
struct EventQueue<Element> {
    private(set) var elements: [Element] = []
    private var start = 0

    var isEmpty: Bool { start == elements.count }
    var first: Element? { isEmpty ? nil : elements[start] }

    /// All elements, the oldest first.
    var all: ArraySlice<Element> { elements[start...] }

    mutating func append(_ element: Element) { elements.append(element) }

    /// Removes unwanted elements, in a time proportional to the queue's length.
    mutating func removeAll(where isUnwanted: (Element) -> Bool) {
        elements.removeFirst(start)
        start = 0
        elements.removeAll(where: isUnwanted)
    }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[start]
        start += 1
        if start == elements.count {
            // Not by `start`: a queue that was long has moved its elements to the front, in all its memory.
            elements.removeAll(keepingCapacity: elements.capacity <= 512)
            start = 0
        } else if start >= 256, start * 2 >= elements.count {
            elements.removeFirst(start)
            start = 0
        }
        return element
    }
}
