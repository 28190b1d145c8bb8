import Base

/// One first-in-first-out line per tenant, served round robin: a tenant with a long line delays only itself.
struct FairQueue<Element> {
    private var lines: [Text: [Element]] = [:]
    /// Tenants with a line, the next one first.
    private var turns: [Text] = []
    private(set) var count = 0

    func count(of tenant: Text) -> Int { lines[tenant]?.count ?? 0 }

    mutating func append(_ element: Element, tenant: Text) {
        if lines[tenant] == nil { turns.append(tenant) }
        lines[tenant, default: []].append(element)
        count += 1
    }

    /// The oldest of the tenant whose turn it is; that tenant goes to the end of the round.
    mutating func popFirst() -> Element? {
        guard !turns.isEmpty else { return nil }
        let tenant = turns.removeFirst()
        let element = lines[tenant]!.removeFirst()
        if lines[tenant]!.isEmpty { lines[tenant] = nil } else { turns.append(tenant) }
        count -= 1
        return element
    }

    /// Takes out the tenant's first element that matches.
    mutating func remove(tenant: Text, where matches: (Element) -> Bool) -> Element? {
        guard let index = lines[tenant]?.firstIndex(where: matches) else { return nil }
        let element = lines[tenant]!.remove(at: index)
        dropLineIfEmpty(tenant)
        count -= 1
        return element
    }

    /// Takes out every element that matches.
    mutating func removeAll(where matches: (Element) -> Bool) -> [Element] {
        var removed: [Element] = []
        for tenant in turns {
            lines[tenant]!.removeAll { element in
                guard matches(element) else { return false }
                removed.append(element)
                return true
            }
            dropLineIfEmpty(tenant)
        }
        count -= removed.count
        return removed
    }

    private mutating func dropLineIfEmpty(_ tenant: Text) {
        guard lines[tenant]!.isEmpty else { return }
        lines[tenant] = nil
        turns.removeAll { $0 == tenant }
    }
}

extension FairQueue: Sendable where Element: Sendable {}
