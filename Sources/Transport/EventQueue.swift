/// First in, first out. What bounds it is said where it is used.
struct EventQueue<Element> {
    private var elements: [Element] = []
    private var start = 0

    var isEmpty: Bool { start == elements.count }
    var first: Element? { isEmpty ? nil : elements[start] }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[start]
        start += 1
        if start == elements.count {
            elements.removeAll(keepingCapacity: start <= 256)
            start = 0
        } else if start >= 256, start * 2 >= elements.count {
            elements.removeFirst(start)
            start = 0
        }
        return element
    }
}
