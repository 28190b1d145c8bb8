/// A first-in, first-out queue. Its length is bounded by the code that fills it.
///
/// It keeps no element that was taken, however many follow: an element may be a message of megabytes, which its taker
/// counts, and counts no more when it is done.
struct EventQueue<Element> {
    /// Nil where an element was taken.
    private var elements: [Element?] = []
    private var start = 0

    var isEmpty: Bool { start == elements.count }
    var first: Element? { isEmpty ? nil : elements[start] }
    /// The places for elements that the queue has memory for.
    var capacity: Int { elements.capacity }

    /// The sum of what `value` gives for the elements.
    func sum(_ value: (Element) -> Int) -> Int {
        elements[start...].reduce(0) { sum, element in sum + (element.map(value) ?? 0) }
    }

    mutating func append(_ element: Element) { elements.append(element) }

    /// Removes unwanted elements, in a time proportional to the queue's length.
    mutating func removeAll(where isUnwanted: (Element) -> Bool) {
        elements.removeFirst(start)
        start = 0
        elements.removeAll { $0.map(isUnwanted) ?? true }
    }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[start].take()
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
